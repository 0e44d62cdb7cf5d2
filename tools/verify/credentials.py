"""credentials.py URL CA FOLDER: holds that an operation takes its own credential and no other.

FOLDER has what can be shown: a key, a join token, a node's certificate, each of
them valid. Where the document does not name it for an operation, the answer must
be 401, whatever the body says.
"""

import json
import sys
from pathlib import Path

import requests

BASE, CA, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])


def bearer(name):
    return {"headers": {"Authorization": "Bearer " + (FOLDER / name).read_text().strip()}}


def main():
    machine = FOLDER / "machines" / "acme-node-0"
    shown = {
        "nothing": {},
        "apiKey": bearer("admin.bearer"),
        "joinToken": bearer("joiner.bearer"),
        "nodeCertificate": {"cert": (str(machine / "cert.pem"), str(machine / "key.pem"))},
    }
    document = json.loads(Path("gen/openapi.json").read_text())
    wrong = count = 0
    for credential, parts in shown.items():
        with requests.Session() as session:
            session.trust_env = False  # the server is on this machine, behind no proxy
            session.verify, session.cert = CA, parts.get("cert")
            session.headers.update(parts.get("headers", {}))
            for path, methods in document["paths"].items():
                for method, operation in methods.items():
                    if any(credential in way for way in operation.get("security", document["security"])):
                        continue
                    example = operation["requestBody"]["content"]["application/json"]["example"]
                    for body in (example, {}, []):
                        status = session.request(method, BASE + path, json=body, timeout=20).status_code
                        count += 1
                        if status != 401:
                            wrong += 1
                            print(f"verify: {operation['operationId']} with {credential} and {json.dumps(body)} is answered with {status}")
    print(f"verify: {count} calls with the wrong credential, {count - wrong} of them refused")
    sys.exit(bool(wrong or not count))


main()
