"""Prepares a new server for schemathesis: world.py URL FOLDER.

BC_ADMIN_KEY is the platform's key, BC_TENANT_KEY one of the tenant acme. In
FOLDER/admin and FOLDER/tenant it writes the ids that a run with that key may use.
"""

import os
import sys
from pathlib import Path

import requests


class Caller:
    def __init__(self, base, key):
        self.base = base
        self.session = requests.Session()
        self.session.trust_env = False  # the server is on this machine, behind no proxy
        self.session.headers["Authorization"] = "Bearer " + key

    def __call__(self, method, **body):
        answer = self.session.post(f"{self.base}/api/compute/{method}", json=body, timeout=20)
        if answer.status_code != 200:
            sys.exit(f"world.py: {method}: {answer.status_code} {answer.text}")
        return answer.json()


def populate(call, tenant):
    """A site, a pool with an agent and one without, tokens and keys, some of them revoked."""
    call("sites/create", tenantId=tenant, siteId="berlin")
    call("pools/create", tenantId=tenant, poolId="quiet", siteId="berlin", agent="none")
    call("pools/create", tenantId=tenant, poolId="lab", siteId="berlin")
    call("pools/update", tenantId=tenant, poolId="lab", policy={"allowVirtualMachines": True})
    tokens, keys = [], []
    for i in range(8):
        pinned = {"expect": {"serial": f"R740-{i}"}} if i % 2 else {}
        token = call("joinTokens/create", tenantId=tenant, poolId="lab", ttlSeconds=3600, idempotencyKey=f"token-{i}", **pinned)
        key = call("apiKeys/create", tenantId=tenant, identity=f"robot-{i}", role="pool-auditor", poolId="lab", idempotencyKey=f"key-{i}")
        tokens.append(token["joinToken"]["id"])
        keys.append(key["apiKey"]["id"])
    call("joinTokens/revoke", tenantId=tenant, poolId="lab", tokenId=tokens[-1])
    call("apiKeys/revoke", tenantId=tenant, keyId=keys[-1])
    return tokens, keys


def write(folder, **dictionaries):
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in dictionaries.items():
        (folder / name).write_text("".join(f'"{value}"\n' for value in values))


def main():
    base, folder = sys.argv[1], Path(sys.argv[2])
    for name in ("openapi.json", "openapi-3.0.json"):
        if requests.get(f"{base}/{name}", timeout=20, proxies={"http": ""}).content != Path("gen", name).read_bytes():
            sys.exit(f"world.py: the server's {name} is not gen/{name}")
    admin = Caller(base, os.environ["BC_ADMIN_KEY"])
    tenant = Caller(base, os.environ["BC_TENANT_KEY"])
    for who, call, own, other in (("tenant", tenant, "acme", "platform"), ("admin", admin, "platform", "acme")):
        tokens, keys = populate(call, own)
        write(folder / who, tenants=[own, "globex", other], tokens=tokens, keys=keys)
    # What the platform owns a site for, and another tenant a pool.
    admin("pools/create", tenantId="globex", poolId="lab", siteId="berlin", siteTenantId="platform")


main()
