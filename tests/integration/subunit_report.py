"""What a suite says, read as subunit from standard input: a line per test as it ends, and counts with all failures at the end.

``subunit_report.py EXCLUSIONS TESTS [JSON]``: the file of what is not run (regular expression # reason), one that names all
tests, and one to which the counts are added, an object on a line.
Run with the suite's own interpreter. Status 0 only if no test failed.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import subunit
import testtools

NAME = re.compile(r"^(.*?)(?:\[.*)?$")
outcomes: dict[str, list[tuple[str, str, str]]] = {"success": [], "fail": [], "skip": []}


def ended(test: dict[str, Any]) -> None:
    if test["status"] == "exists":
        return  # of the list of what is to run
    status = {"success": "success", "skip": "skip"}.get(test["status"], "fail")
    name = NAME.sub(r"\1", test["id"])
    details = {
        key: content.as_text() for key, content in test["details"].items() if content.content_type.type == "text"
    }
    reason = details.get("reason", "") if status == "skip" else ""
    outcomes[status].append((name, reason, details.get("traceback", "")))
    print(f"{status:8}{name} {reason}".rstrip(), flush=True)


result = testtools.StreamToDict(ended)
result.startTestRun()
subunit.ByteStreamToStreamResult(sys.stdin.buffer, non_subunit_name="stdout").run(result)
result.stopTestRun()

for name, _, traceback in outcomes["fail"]:
    print(f"\nFAILED {name}\n{traceback[-3000:]}")
left = set(Path(sys.argv[2]).read_text().split())
excluded: Counter[str] = Counter()
print("\nexcluded:")
for line in Path(sys.argv[1]).read_text().splitlines():
    pattern, _, reason = line.partition("#")
    matching = {test for test in left if pattern.strip() and re.search(pattern.strip(), test)}
    if matching:
        print(f"  {len(matching):3} {pattern.strip()}: {reason.strip()}")
    excluded[reason.strip()] += len(matching)
    left -= matching

counts = {name: len(found) for name, found in outcomes.items()}
print(f"\npassed {counts['success']}, failed {counts['fail']}, skipped {counts['skip']}, excluded {excluded.total()}")
for name, _, _ in outcomes["fail"]:
    print(f"failed: {name}")
if len(sys.argv) > 3:
    skipped = Counter(reason or "no reason" for _, reason, _ in outcomes["skip"])
    found = {"passed": counts["success"], "failed": [name for name, _, _ in outcomes["fail"]], "skipped": skipped}
    with Path(sys.argv[3]).open("a") as written:
        written.write(json.dumps({**found, "excluded": +excluded}) + "\n")
sys.exit(bool(outcomes["fail"]) or not outcomes["success"])
