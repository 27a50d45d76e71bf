"""What is not run of a suite, and why: the lines ``SUITE::CASE # reason`` of exclusions.txt."""

from __future__ import annotations

from pathlib import Path

EXCLUSIONS = Path(__file__).with_name("exclusions.txt")


def of_suite(suite: str) -> dict[str, str]:
    """Case -> why it is not run."""
    found = {}
    for line in EXCLUSIONS.read_text().splitlines():
        case, _, reason = line.partition("#")
        name, _, inner = case.strip().partition("::")
        if name == suite:
            found[inner] = reason.strip()
    return found
