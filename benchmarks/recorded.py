"""Instructions of each operation as they were recorded, by the kind of Python that took them.

Another version of Python, or another architecture, needs others: there is a figure for those on which somebody has called
``make bench BENCH="--record"``, on a machine that counts.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path

FILE = Path(__file__).with_name("recorded.json")
# How far an operation may be from its figure: runs differ by 1 to 3 %.
TOLERANCE = 0.05


def kind() -> str:
    """This Python: ``CPython-3.11-x86_64``."""
    major, minor, _patch = platform.python_version_tuple()
    return f"{platform.python_implementation()}-{major}.{minor}-{platform.machine()}"


def load() -> dict[str, int]:
    """operation -> instructions, for this kind of Python; empty if nobody has recorded any."""
    return _read().get(kind(), {})


def save(instructions: dict[str, int]) -> None:
    """Replaces the figures of this kind of Python."""
    FILE.write_text(json.dumps(_read() | {kind(): instructions}, indent=2, sort_keys=True) + "\n")


def _read() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found
