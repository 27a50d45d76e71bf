"""Lists of CPUs as people write them: ``0-3,^2,8``. Source: Compute configuration reference, ``cpu_dedicated_set``."""

from __future__ import annotations

import re

_PART = re.compile(r"\s*(\^?)(\d+)(?:\s*-\s*(\d+))?\s*")


def parse(text: str) -> set[int]:
    """Returns the CPUs that a list names. Raises ValueError if it can't be read."""
    wanted: set[int] = set()
    excluded: set[int] = set()
    for part in filter(str.strip, text.split(",")):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"'{part}' is not a CPU or a range of CPUs")
        first, last = int(match[2]), int(match[3] or match[2])
        if last < first or last > 65535:
            raise ValueError(f"'{part}' is not a range of CPUs")
        (excluded if match[1] else wanted).update(range(first, last + 1))
    return wanted - excluded


def text(cpus: set[int] | list[int]) -> str:
    """Returns the CPUs as a list in its shortest form."""
    parts: list[str] = []
    ordered = sorted(cpus)
    start = 0
    for place, cpu in enumerate(ordered):
        if place + 1 == len(ordered) or ordered[place + 1] != cpu + 1:
            first = ordered[start]
            parts.append(str(first) if first == cpu else f"{first}-{cpu}")
            start = place + 1
    return ",".join(parts)
