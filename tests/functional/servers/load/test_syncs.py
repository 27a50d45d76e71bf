"""How many files and folders each operation syncs. The numbers are exact, and none is accidental: docs/repair.md says why each is
needed. `tests/functional/processes/test_power_cut.py` looks at their order.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import durability
from benchmarks.cloud import MeasuredCloud

pytestmark = pytest.mark.embedded("counts syncs inside one process")

SYNCS = {
    # At the target: the order 2, the copy with its folder, digests and state 5. At the source: the guest is off 2, the offer 4,
    # the definition is gone 1, the disks are stashed 3, the order 2. At the target: the last changes 3, the guest's disk 3 and
    # definition 2, the order 2. At the source: the offer has ended 1.
    "resize": 30,
    "confirm": 3,
    "revert": 10,
}


def test_operations_sync_what_must_outlive_a_power_cut_and_nothing_else(tmp_path: Path) -> None:
    with MeasuredCloud(tmp_path / "cloud") as cloud:
        found = durability.count(cloud)
    assert {name: counts["files"] for name, counts in found.items()} == SYNCS
