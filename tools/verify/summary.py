"""summary.py FOLDER…: judges the reports of the runs as a whole and prints one line."""

import json
import sys
from collections import Counter
from pathlib import Path

import yaml


def main():
    folders = [Path(name) for name in sys.argv[1:]]
    reports = [json.loads((folder / "report.json").read_text()) for folder in folders]
    wrong = []

    accepted, operations, cases, findings = Counter(), 0, 0, 0
    for folder, report in zip(folders, reports):
        if not report["complete"] or report["operations"]["tested"] != report["operations"]["total"]:
            wrong.append(f"the run {folder.name} did not test every operation")
        operations = report["operations"]["total"]
        cases += report["test_cases"]["generated"]
        findings += report["test_cases"]["unique_failures"] + len(report["errors"])
        for operation, phases in report["valid_rates"].items():
            accepted[operation] += sum(phase["accepted"] for phase in phases.values())
    # What is never accepted was not really tested, however green it looks.
    never = [operation for operation, count in accepted.items() if count == 0]
    if never or len(accepted) != operations:
        wrong.append(f"of {operations} operations {len(accepted)} were called; never accepted: {', '.join(never) or 'none'}")

    filters = yaml.safe_load((Path(__file__).parent / "filters.yaml").read_text())
    used = [sum(counts) for counts in zip(*(json.loads((folder / "used").read_text()) for folder in folders))]
    for entry, count in zip(filters, used):
        what = " ".join(entry[key] for key in ("code", "field", "rule") if key in entry)
        print(f"verify: let pass {count:4} {what}")

    for line in wrong:
        print("verify:", line)
    print(
        f"verify: schemathesis {operations} operations, {cases} cases, {findings} findings, "
        f"{sum(used)} let pass by {len(filters)} filters; redocly ok; spectral ok"
    )
    sys.exit(bool(wrong or findings))


main()
