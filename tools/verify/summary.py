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

    counts = [json.loads((folder / "counts.json").read_text()) for folder in folders]
    seen, cases, findings = Counter(), 0, 0
    for folder, report, count in zip(folders, reports, counts):
        if not report["complete"] or not report["operations"]["tested"] == report["operations"]["selected"] > 0:
            wrong.append(f"{folder.name} did not test every operation that it is for")
        cases += report["test_cases"]["generated"]
        findings += report["test_cases"]["unique_failures"] + len(report["errors"])
        seen.update(count["seen"])
    # What is never accepted was not really tested, however green it looks.
    successes = [
        (f"{method.upper()} {path}", status)
        for path, methods in json.loads(Path("gen/openapi.json").read_text())["paths"].items()
        for method, operation in methods.items() for status in operation["responses"] if status < "300"
    ]
    operations = len({label for label, _ in successes})
    for label, status in successes:
        if not seen[f"{label} {status}"]:
            wrong.append(f"{label} was never answered with {status}")

    filters = yaml.safe_load((Path(__file__).parent / "filters.yaml").read_text())
    used = [sum(each) for each in zip(*(count["used"] for count in counts))]
    for entry, count in zip(filters, used):
        what = " ".join(entry[key] for key in ("code", "reason", "field", "rule") if key in entry)
        print(f"verify: let pass {count:4} {what}")

    for line in wrong:
        print("verify:", line)
    print(
        f"verify: schemathesis {operations} operations, {cases} cases, {findings} findings, "
        f"{sum(used)} let pass by {len(filters)} filters; redocly ok; spectral ok"
    )
    sys.exit(bool(wrong or findings))


main()
