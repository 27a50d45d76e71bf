"""What a guest of the demonstration says on its console (see ``virt/lab/guest_init.sh``; simulated guests say the same)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass
class Marker:
    """The lines that a guest found on a disk and wrote to it, one more at every boot; ``first`` is the oldest."""

    lines: int
    first: str


@dataclass
class GuestReport:
    """What a guest saw when it booted last. ``boot`` is counted on its root disk."""

    boot: int = 0
    vcpus: int = 0
    memory_mb: int = 0
    mac: str = ""
    ip: str = ""
    ready: bool = False
    markers: dict[str, Marker] = field(default_factory=dict)

    def lines(self, disk: str) -> int:
        return self.markers[disk].lines if disk in self.markers else 0

    def first(self, disk: str) -> str:
        return self.markers[disk].first if disk in self.markers else "nothing"


def last_report(console: str) -> GuestReport:
    """The report of the last boot in a console's output; an empty one if there is none."""
    report = GuestReport()
    # The guest may be in the middle of the last line.
    for line in console[: console.rfind("\n") + 1].splitlines():
        line = line.strip()
        if line.startswith("CAUSEWAY-GUEST "):
            found = dict(word.split("=", 1) for word in line.split()[1:] if "=" in word)
            report = GuestReport(
                int(found["boot"]), int(found["vcpus"]), int(found["memory_mb"]), found["mac"], found["ip"]
            )
        elif marker := re.match(r"CAUSEWAY-MARKER disk=(\S+) lines=(\d+) first=(.*)", line):
            report.markers[marker[1]] = Marker(int(marker[2]), marker[3])
        elif line == "CAUSEWAY-READY":
            report.ready = True
    return report
