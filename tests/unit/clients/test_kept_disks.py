"""The disk of a server that moves inside of shared storage is counted once, and comes back as it was."""

from __future__ import annotations

import pytest

from causeway.clients.placement.kept_disk import left_behind, returned
from causeway.clients.placement.types import Allocations

CPU = {"VCPU": 1, "MEMORY_MB": 512}


def in_pool(node: str, disk_gb: int, pool: str = "pool") -> Allocations:
    return {node: dict(CPU), pool: {"DISK_GB": disk_gb}}


def of_its_own(node: str, disk_gb: int) -> Allocations:
    return {node: CPU | {"DISK_GB": disk_gb}}


@pytest.mark.parametrize("disk_gb", [10, 12])
@pytest.mark.parametrize("node", ["source", "target"])
def test_a_server_keeps_its_disk_and_gets_back_what_it_had(node: str, disk_gb: int) -> None:
    held, target = in_pool("source", 10), in_pool(node, disk_gb)
    left = left_behind(held, target)
    assert left == {"source": CPU}
    assert returned(left, target, 10) == held


def test_a_disk_that_did_not_change_comes_back_without_being_named() -> None:
    held, target = in_pool("source", 10), in_pool("target", 10)
    assert returned(left_behind(held, target), target, None) == held


@pytest.mark.parametrize(
    ("held", "target"),
    [
        (in_pool("source", 10), in_pool("target", 10, "another pool")),
        (in_pool("source", 10), of_its_own("target", 10)),
        (of_its_own("source", 10), in_pool("target", 10)),
        (of_its_own("source", 10), of_its_own("target", 12)),
        (of_its_own("source", 10), of_its_own("source", 12)),
        (in_pool("source", 10), in_pool("target", 8)),
        ({"source": CPU}, in_pool("target", 8)),
    ],
)
def test_all_else_goes_to_the_migration_and_back(held: Allocations, target: Allocations) -> None:
    before = sum(resources.get("DISK_GB", 0) for resources in held.values())
    left = left_behind(held, target)
    assert left == held
    assert returned(left, target, before) == held


def test_what_a_move_claimed_twice_before_an_upgrade_comes_back_once() -> None:
    held = in_pool("source", 10)
    assert returned(held, in_pool("target", 12), None) == held
