"""Prepares a new server for schemathesis: world.py URL CA FOLDER.

BC_ADMIN_KEY is the platform's key, BC_TENANT_KEY one of the tenant acme. FOLDER
has bcd and csrs.json, and gets a folder for each run with the ids and certificate
requests that it may use, the join tokens that are the bearers of runs, secrets
with what no log may hold, and machines with what bcd keeps of those that joined.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import requests

BASE, CA, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
DOCUMENTS = ("openapi.json", "openapi-3.0.json")
EACH = 6  # machines of each kind that a tenant has
# Firmware that was never filled in: such a machine waits for an operator.
PLACEHOLDER = {"serial": "To Be Filled By O.E.M.", "productUuid": "03000200-0400-0500-0006-000700080009"}


def session():
    new = requests.Session()
    new.trust_env = False  # the server is on this machine, behind no proxy
    new.verify = CA
    return new


class Caller:
    def __init__(self, key):
        self.session = session()
        self.session.headers["Authorization"] = "Bearer " + key

    def __call__(self, method, **body):
        answer = self.session.post(f"{BASE}/api/compute/{method}", json=body, timeout=20)
        if answer.status_code != 200:
            sys.exit(f"world.py: {method}: {answer.status_code} {answer.text}")
        return answer.json()


def private(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)


class Tenant:
    """What one tenant has, made with one key."""

    def __init__(self, call, tenant):
        self.call, self.tenant, self.secrets, self.machines = call, tenant, [], []
        self.tokens, self.keys, self.nodes, self.requests, self.hashes, self.listed = [], [], [], [], [], []

    def of_pool(self, method, **body):
        return self.call(method, tenantId=self.tenant, poolId=body.pop("poolId", "lab"), **body)

    def mint(self, name, **body):
        minted = self.of_pool("joinTokens/create", ttlSeconds=3600, idempotencyKey=name, **body)
        self.secrets.append(minted["token"])
        return minted["joinToken"]["id"], minted["token"]

    def places(self):
        """A site, and pools with and without an agent; in one of them nobody is let in who is not known."""
        self.call("sites/create", tenantId=self.tenant, siteId="berlin")
        self.of_pool("pools/create", poolId="quiet", siteId="berlin", agent="none")
        self.of_pool("pools/create", poolId="known", siteId="berlin", policy={"attestor": "discovery"})
        self.of_pool("pools/create", siteId="berlin")
        self.of_pool("pools/update", policy={"allowVirtualMachines": True})

    def credentials(self):
        """Tokens and keys, some of them revoked."""
        for i in range(8):
            pinned = {"expect": {"serial": f"R740-{i}"}} if i % 2 else {}
            self.tokens.append(self.mint(f"token-{i}", **pinned)[0])
            key = self.of_pool("apiKeys/create", identity=f"robot-{i}", role="pool-auditor", idempotencyKey=f"key-{i}")
            self.secrets.append(key["key"])
            self.keys.append(key["apiKey"]["id"])
        self.of_pool("joinTokens/revoke", tokenId=self.tokens[-1])
        self.call("apiKeys/revoke", tenantId=self.tenant, keyId=self.keys[-1])

    def inventory(self):
        """Machines that are listed, and in known the one of the document's examples."""
        self.listed = [f"rack7-u{i}" for i in range(8)]
        self.of_pool("inventory/import", machines=[
            {"machineId": name, "identifiers": {"serial": f"SYS-{i}", "macs": [f"3c:ec:ef:12:34:{i:02x}"]}}
            for i, name in enumerate(self.listed)
        ])
        self.of_pool("inventory/remove", machineId=self.listed[-1])
        example = {"serial": "CZ2D1X0QTP", "macs": ["3c:ec:ef:12:34:56"]}
        self.of_pool("inventory/import", poolId="known", machines=[{"machineId": "rack7-u12", "identifiers": example}])

    def start_joins(self):
        """Machines that run bcd join: some are nodes by it, some wait for an operator."""
        token = FOLDER / "machines" / f"{self.tenant}.token"
        private(token, self.mint("machines", maxUses=100)[1])
        for i in range(EACH):
            self.start_join(f"node-{i}", token, {"serial": f"HOST-{i}", "environment": "host"}, 0)
            self.start_join(f"box-{i}", token, PLACEHOLDER, 3)

    def start_join(self, name, token, claims, want):
        state = FOLDER / "machines" / f"{self.tenant}-{name}"
        said = state.with_suffix(".claims")
        said.write_text(json.dumps({**claims, "hostname": name}))
        with open(state.with_suffix(".log"), "w") as log:
            self.machines.append((state, want, subprocess.Popen(
                [FOLDER / "bcd", "join", "--server", BASE, "--ca-file", CA, "--token-file", token,
                 "--state", state, "--claims", said, "--log-level", "debug", "--timeout", "20s"], stdout=log, stderr=log)))

    def finish_joins(self):
        """What became of them, in their own order; the last of each kind are decided on."""
        for state, want, process in self.machines:
            if process.wait(timeout=60) != want:
                sys.exit(f"world.py: bcd join ended with {process.returncode}, not {want}: {state.with_suffix('.log').read_text()}")
        self.nodes = [node["id"] for node in in_order(self.of_pool("nodes/list")["nodes"])]
        waiting = in_order(self.of_pool("joinRequests/list")["joinRequests"])
        self.requests = [request["id"] for request in waiting]
        self.hashes = [request["csrSha256"] for request in waiting]
        if (len(self.nodes), len(self.requests)) != (EACH, EACH):
            sys.exit(f"world.py: {len(self.nodes)} nodes and {len(self.requests)} join requests, not {EACH} of each")
        self.of_pool("nodes/remove", nodeId=self.nodes[-1])
        self.of_pool("nodes/ban", nodeId=self.nodes[-2], note="seen in another rack")
        self.of_pool("joinRequests/deny", requestId=self.requests[-1])
        self.of_pool("joinRequests/approve", requestId=self.requests[-2], csrSha256=self.hashes[-2])

    def write(self, run, others=(), csrs=("none",)):
        """What a run may use; generators prefer what is first. Half of the certificate requests are for hooks.py."""
        half = (len(csrs) + 1) // 2
        dictionaries = {
            "tenants": [self.tenant, *others], "tokens": self.tokens, "keys": self.keys, "nodes": self.nodes[:3] + self.nodes[-2:],
            "leaving": self.nodes[3:], "requests": self.requests, "hashes": self.hashes, "machines": self.listed, "csrs": csrs[:half],
        }
        (FOLDER / run).mkdir()
        for name, values in dictionaries.items():
            text = "".join('"{}"\n'.format(value.replace("\n", "\\n")) for value in values)
            (FOLDER / run / name).write_text(text)
        (FOLDER / run / "fresh.json").write_text(json.dumps(csrs[half:]))


def in_order(machines):
    return sorted(machines, key=lambda machine: machine["claims"]["hostname"])


def main():
    for name in DOCUMENTS:
        if session().get(f"{BASE}/{name}", timeout=20).content != Path("gen", name).read_bytes():
            sys.exit(f"world.py: the server's {name} is not gen/{name}")
    admin = Caller(os.environ["BC_ADMIN_KEY"])
    acme = Tenant(Caller(os.environ["BC_TENANT_KEY"]), "acme")
    platform = Tenant(admin, "platform")
    for tenant in (acme, platform):
        tenant.places()
        tenant.credentials()
        tenant.inventory()
        tenant.start_joins()
    for tenant in (acme, platform):
        tenant.finish_joins()
    # What the platform owns a site for, and another tenant a pool.
    admin("pools/create", tenantId="globex", poolId="lab", siteId="berlin", siteTenantId="platform")

    platform.write("admin", ["globex", "acme"])
    acme.write("tenant", ["globex", "platform"])
    csrs = json.loads((FOLDER / "csrs.json").read_text())
    for at, (run, pool) in enumerate((("joiner", "lab"), ("stranger", "known"), ("node", None), ("peer", None))):
        acme.write(run, csrs=csrs[at::4])
        bearer = "none"  # a node has its certificate
        if pool:
            bearer = acme.mint(run, poolId=pool, maxUses=10000, allowReclaim=pool == "lab")[1]
        private(FOLDER / f"{run}.bearer", bearer)
    bearers = [os.environ["BC_ADMIN_KEY"], os.environ["BC_TENANT_KEY"], *acme.secrets, *platform.secrets]
    private(FOLDER / "secrets", "".join(bearer.split(".")[1] + "\n" for bearer in bearers))


main()
