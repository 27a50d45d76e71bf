"""What members learn of a failed move names no host and no address."""

from __future__ import annotations

import pytest

from causeway.model.flavor import Flavor
from causeway.model.states import VmState
from causeway.moves.memory import MoveMemory
from causeway.moves.reasons import LONGEST, for_members

FLAVOR = Flavor("small", "small", vcpus=1, memory_mb=128, root_gb=1)
MEMORY = MoveMemory(
    migration_type="resize",
    source_cell="cell1",
    source_host="node-1",
    source_node="uuid",
    source_hypervisor="node-1.example.org",
    source_zone=None,
    old_flavor=FLAVOR,
    new_flavor=FLAVOR,
    old_vm_state=VmState.ACTIVE,
    bound_hosts=["node-12"],
)


@pytest.mark.parametrize(
    ("message", "reported"),
    [
        ("node-1 did not answer.", "The source host did not answer."),
        ("Compute host node-1.example.org is down.", "The source host is down."),
        ("The claim on node-12 was refused.", "The claim on another host was refused."),
        ("http://192.0.2.7:8000/disks broke off", "An address broke off"),
        ("Nobody at 192.0.2.7:22 answers.", "Nobody at an address answers."),
        ("Resize error: Unable to resize disk down.", "Resize error: Unable to resize disk down."),
        ("x" * 300, "X" + "x" * (LONGEST - 1)),
    ],
)
def test_hosts_are_named_by_what_they_are_to_the_move(message: str, reported: str) -> None:
    assert for_members(message, MEMORY) == reported
