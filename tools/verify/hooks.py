"""What schemathesis has to know of Better Compute: what it lets pass, and checks of our own.

BC_VERIFY_KEEP has the ids of the keys that runs use; BC_VERIFY_TENANT the only tenant
that this one's credential reaches, or nothing; BC_VERIFY_BEARER its bearer, or none.
BC_VERIFY_RUN is its folder, where counts.json says in the end how often each filter was
used and each status seen; BC_VERIFY_SECRETS is the file that lists what no log may hold.
"""

import atexit
import json
import os
import re
from collections import Counter
from itertools import count, cycle
from pathlib import Path

import schemathesis
import yaml

KEEP = os.environ["BC_VERIFY_KEEP"].split()
NO_KEY = "ak_" + "0" * 52
# The idempotency keys of the document's examples.
EXAMPLE_KEYS = ("rack-7", "ci-2026")
EXAMPLE_CSRS = [
    method["post"]["requestBody"]["content"]["application/json"]["example"].get("csr", "")
    for method in json.loads(Path("gen/openapi.json").read_text())["paths"].values()
]
TENANT = os.environ["BC_VERIFY_TENANT"]
BEARER = os.environ["BC_VERIFY_BEARER"]
RUN = Path(os.environ["BC_VERIFY_RUN"])

FILTERS = yaml.safe_load((Path(__file__).parent / "filters.yaml").read_text())
used = Counter()
seen = Counter()
fresh = count()
fresh_csrs = cycle(json.loads((RUN / "fresh.json").read_text()))


@atexit.register
def write_counts():
    (RUN / "counts.json").write_text(json.dumps({"used": [used[i] for i in range(len(FILTERS))], "seen": seen}))


def problem_of(response):
    """The problem that a response is, or None."""
    if response.headers.get("content-type") != ["application/problem+json"]:
        return None
    return response.json()


def filters_for(problem):
    """The filters that a refusal falls under with all that it says, or none."""
    found = set()
    for violation in problem.get("errors") or [{}]:
        matching = [i for i, entry in enumerate(FILTERS) if covers(entry, problem, violation)]
        if not matching:
            return set()
        found.update(matching)
    return found


def covers(entry, problem, violation):
    return (
        entry["code"] == problem["code"]
        and entry.get("reason") == problem.get("reason")
        and entry.get("rule") == violation.get("rule")
        and re.fullmatch(entry.get("field", ""), violation.get("field", "")) is not None
    )


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Keep a failure, unless it is a well-formed call whose refusal is in filters.yaml."""
    problem = problem_of(response)
    if type(failure).__name__ != "RejectedPositiveData" or problem is None:
        return True
    found = filters_for(problem)
    used.update(found)
    return not found


@schemathesis.hook
def before_call(context, case, kwargs):
    # A run whose own key is revoked tests nothing from then on.
    if isinstance(case.body, dict) and case.body.get("keyId") in KEEP:
        case.body = {**case.body, "keyId": NO_KEY}
    # The coverage phase varies one field at a time beside those of the example,
    # and a second call with the example's idempotency key is a CONFLICT before
    # anything else is looked at.
    if isinstance(case.body, dict) and case.body.get("idempotencyKey") in EXAMPLE_KEYS:
        case.body = {**case.body, "idempotencyKey": f"{case.body['idempotencyKey']}.{next(fresh)}"}
    # Likewise a second call with the example's certificate request is but a replay.
    if isinstance(case.body, dict) and case.body.get("csr") in EXAMPLE_CSRS:
        case.body = {**case.body, "csr": next(fresh_csrs)}
    # The coverage phase of 4.32 makes header values of letters and digits alone.
    # Where a pattern asks for more, as ^ev_ does, it puts a wrong value into
    # cases that are about something else, even into good ones.
    data = case.meta.phase.data if case.meta else None
    about = getattr(data, "parameter", None)
    if hasattr(data, "scenario") and about != "Last-Event-ID" and case.headers.get("Last-Event-ID") == "0":
        del case.headers["Last-Event-ID"]


@schemathesis.hook
def after_call(context, case, response):
    """Count the answer, and remember the secret of a bearer that the server gives away."""
    seen[f"{case.operation.label} {response.status_code}"] += 1
    if response.status_code == 200 and case.operation.label.endswith("/create"):
        bearers = [value for name, value in response.json().items() if name in ("token", "key")]
        with open(os.environ["BC_VERIFY_SECRETS"], "a") as secrets:
            secrets.writelines(bearer.split(".")[1] + "\n" for bearer in bearers)


@schemathesis.check
def problem_form(ctx, response, case):
    """Every refusal is a problem that agrees with its status and headers."""
    if response.status_code < 400:
        return
    problem = problem_of(response)
    assert problem is not None, "the refusal is no application/problem+json"
    assert problem["status"] == response.status_code, "the problem and the response differ in their status"
    assert problem["type"] == "urn:bettercompute:problem:" + problem["code"], "the problem's type does not name its code"
    assert [problem["requestId"]] == response.headers["x-request-id"], "the problem and the headers differ in the request id"


@schemathesis.check
def credential_holds(ctx, response, case):
    """The run's own credential is taken until the end, or its wrong data is not judged any more."""
    sent = response.request.headers.get("Authorization", "Bearer none")
    assert response.status_code != 401 or sent != f"Bearer {BEARER}", "the run's own credential is refused"


@schemathesis.check
def own_tenant_only(ctx, response, case):
    """Who is of a tenant gets nothing of another one."""
    if not TENANT or response.status_code not in (200, 202):
        return
    told = set(tenants_of(json.loads(response.request.body)))
    if response.headers["content-type"] == ["application/json"]:
        told.update(tenants_of(response.json()))
    assert told <= {TENANT}, f"who is of {TENANT} got an answer about {', '.join(sorted(told - {TENANT}))}"


def tenants_of(value):
    """The tenants that a call or its answer names as the owners of what it is about."""
    if isinstance(value, list):
        for item in value:
            yield from tenants_of(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in ("tenantId", "tenantid"):
                yield item
            else:
                yield from tenants_of(item)
