"""What became of the cases of a suite, in the shape in which all suites say it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree


@dataclass
class Counts:
    """``failed``: case -> what it said. ``skipped``, ``excluded``: reason -> how many."""

    passed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    excluded: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Those of another run of the same suite."""
        self.passed += other.passed
        self.failed |= other.failed
        self.skipped += other.skipped
        self.excluded += other.excluded

    def report(self, json_file: Path | None) -> int:
        """To standard output, and as a line of JSON to ``json_file``; 0 only if something passed and nothing failed."""
        for case, said in self.failed.items():
            print(f"\nFAILED {case}\n{said[-3000:]}")
        for name, reasons in (("skipped", self.skipped), ("excluded", self.excluded)):
            for reason, count in reasons.items():
                print(f"{name}: {count:3} {reason}")
        print(
            f"\npassed {self.passed}, failed {len(self.failed)}, "
            f"skipped {self.skipped.total()}, excluded {self.excluded.total()}"
        )
        for case in self.failed:
            print(f"failed: {case}", flush=True)
        if json_file is not None:
            found = {"passed": self.passed, "failed": list(self.failed), "skipped": self.skipped}
            with json_file.open("a") as written:
                written.write(json.dumps({**found, "excluded": self.excluded}) + "\n")
        return int(bool(self.failed) or not self.passed)


def of_junit(file: Path) -> Counts:
    """What pytest wrote with ``--junitxml``. A case that failed twice, as at its end, too, is one."""
    found = Counts()
    for case in ElementTree.parse(file).iter("testcase"):
        name = case.get("name", "")
        wrong = [*case.findall("failure"), *case.findall("error")]
        skipped = case.find("skipped")
        if wrong:
            found.failed[name] = wrong[0].text or ""
        elif skipped is not None:
            found.skipped[skipped.get("message", "no reason")] += 1
        else:
            found.passed += 1
    return found
