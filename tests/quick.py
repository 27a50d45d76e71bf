"""What `make test` runs, and what it leaves to `make test-rest`: together they run every test, none of them twice.

``--part quick`` proves each statement once: every test function that needs a cloud with its first case, and everything
that takes milliseconds. ``--part rest`` has the further cases, and what takes long: real guests, processes,
databases, message queues, browsers.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import pytest

Part = Literal["quick", "rest"]
ROOT = Path(__file__).parents[1]

# Their tests take milliseconds: all cases are quick.
EVERY_CASE = (
    "tests/unit",
    "tests/functional/clients",
    "tests/functional/metadata",
    "tests/functional/placement",
)
# Real guests, packages, and deployments of many processes. Servers and browsers need not be there for `make test`.
REST = ("tests/integration", "tests/functional/processes", "tests/functional/demo")
REST_MARKERS = ("long", "libvirt", "integration", "browser")


def parts_of(tests: Iterable[tuple[str, frozenset[str]]]) -> dict[str, Part]:
    """Which part runs each test, by its node ID. ``tests``: node IDs with the names of their markers, in order."""
    found: dict[str, Part] = {}
    seen: set[str] = set()
    for node_id, markers in tests:
        function = node_id.partition("[")[0]
        if _is_in(node_id, REST) or markers.intersection(REST_MARKERS):
            found[node_id] = "rest"
        elif _is_in(node_id, EVERY_CASE) or function not in seen:
            found[node_id] = "quick"
            seen.add(function)
        else:
            found[node_id] = "rest"
    return found


def _is_in(node_id: str, folders: Iterable[str]) -> bool:
    return any(node_id.startswith(f"{folder}/") for folder in folders)


def is_left_out(part: Part | None, path: Path) -> bool:
    """Whether nothing of a folder belongs to the part, so that it need not be collected."""
    return part == "quick" and any(path.is_relative_to(ROOT / folder) for folder in REST)


def keep(part: Part, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests of the other part."""
    parts = parts_of((item.nodeid, frozenset(marker.name for marker in item.iter_markers())) for item in items)
    config.hook.pytest_deselected(items=[item for item in items if parts[item.nodeid] != part])
    items[:] = [item for item in items if parts[item.nodeid] == part]
