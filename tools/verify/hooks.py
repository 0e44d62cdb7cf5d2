"""What schemathesis has to know of Better Compute: what it lets pass, and checks of our own.

BC_VERIFY_KEEP has the ids of the keys that runs use; BC_VERIFY_TENANT the only tenant
that this one's key reaches, or nothing; BC_VERIFY_USED the file that says how often
each filter was used.
"""

import atexit
import json
import os
import re
from collections import Counter
from itertools import count
from pathlib import Path

import schemathesis
import yaml

KEEP = os.environ["BC_VERIFY_KEEP"].split()
NO_KEY = "ak_" + "0" * 52
# The idempotency keys of the document's examples.
EXAMPLE_KEYS = ("rack-7", "ci-2026")
TENANT = os.environ["BC_VERIFY_TENANT"]

FILTERS = yaml.safe_load((Path(__file__).parent / "filters.yaml").read_text())
used = Counter()
fresh = count()


@atexit.register
def write_used():
    Path(os.environ["BC_VERIFY_USED"]).write_text(json.dumps([used[i] for i in range(len(FILTERS))]))


def problem_of(response):
    """The problem that a response is, or None."""
    if response.headers.get("content-type") != ["application/problem+json"]:
        return None
    return response.json()


def filters_for(problem):
    """The filters that a refusal falls under with all that it says, or none."""
    found = set()
    for violation in problem.get("errors") or [{}]:
        matching = [i for i, entry in enumerate(FILTERS) if covers(entry, problem["code"], violation)]
        if not matching:
            return set()
        found.update(matching)
    return found


def covers(entry, code, violation):
    return (
        entry["code"] == code
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
    # The coverage phase of 4.32 makes header values of letters and digits alone.
    # Where a pattern asks for more, as ^ev_ does, it puts a wrong value into
    # cases that are about something else, even into good ones.
    data = case.meta.phase.data if case.meta else None
    about = getattr(data, "parameter", None)
    if hasattr(data, "scenario") and about != "Last-Event-ID" and case.headers.get("Last-Event-ID") == "0":
        del case.headers["Last-Event-ID"]


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
def own_tenant_only(ctx, response, case):
    """A tenant's key gets nothing of another tenant."""
    if not TENANT or response.status_code != 200:
        return
    tenant = json.loads(response.request.body)["tenantId"]
    assert tenant == TENANT, f"a key of {TENANT} got an answer about {tenant}"
