"""PCI devices for requests: near the server's cells, never twice, and never a function beside its physical one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.hardware.host import device_specs, devices_for_guests
from causeway.hardware.misfit import Misfit
from causeway.hardware.pci_fit import pools, take_devices, take_from_pools
from causeway.model.pci import InstancePCIRequest, PciDevice, PciDeviceStatus

NIC = {"vendor_id": "8086", "product_id": "154d"}


def device(number: int, numa_node: int | None = None, **more: Any) -> PciDevice:
    return PciDevice(f"0000:{number:02x}:00.0", "8086", "154d", numa_node=numa_node, **more)


def wanted(count: int = 1, policy: str | None = None) -> InstancePCIRequest:
    return InstancePCIRequest("request", count, [NIC], "nic", policy)


@pytest.mark.parametrize(
    ("policy", "cells", "taken"),
    [
        (None, {1}, ["0000:02:00.0", "0000:03:00.0"]),
        ("legacy", {1}, ["0000:02:00.0", "0000:03:00.0"]),
        ("required", {1}, ["0000:02:00.0"]),
        ("socket", {1}, ["0000:02:00.0"]),
        ("preferred", {1}, ["0000:02:00.0", "0000:01:00.0", "0000:03:00.0"]),
        # Who does not care leaves devices near cells to those that do.
        (None, None, ["0000:03:00.0", "0000:01:00.0", "0000:02:00.0"]),
    ],
)
def test_devices_are_near_the_cells_as_the_policy_says(
    policy: str | None, cells: set[int] | None, taken: list[str]
) -> None:
    there = [device(1, 0), device(2, 1), device(3)]
    found = take_devices([wanted(len(taken), policy)], there, cells)
    assert [each.address for each in found] == taken
    take_from_pools([wanted(len(taken), policy)], pools(there), cells)
    with pytest.raises(Misfit, match=f"alias nic .needs {len(taken) + 1}, {len(taken)} free"):
        take_devices([wanted(len(taken) + 1, policy)], there, cells)
    with pytest.raises(Misfit):
        take_from_pools([wanted(len(taken) + 1, policy)], pools(there), cells)


def test_a_physical_function_and_its_virtual_ones_exclude_each_other() -> None:
    physical = device(1, dev_type="type-PF")
    virtual = [device(number, dev_type="type-VF", parent_addr=physical.address) for number in (2, 3)]
    assert len(take_devices([wanted(2)], virtual, None)) == 2
    with pytest.raises(Misfit):
        take_devices([wanted(3)], [physical, *virtual], None)


@given(st.lists(st.integers(1, 3), max_size=4), st.lists(st.sampled_from([None, 0, 1]), max_size=5))
def test_no_device_is_given_away_twice(counts: list[int], nodes: list[int | None]) -> None:
    there = [device(number, node) for number, node in enumerate(nodes, 1)]
    requests = [wanted(count) for count in counts]
    if sum(counts) > len(there):
        with pytest.raises(Misfit):
            take_devices(requests, there, None)
    else:
        found = take_devices(requests, there, None)
        assert len({each.address for each in found}) == sum(counts)
    assert all(each.status == PciDeviceStatus.AVAILABLE for each in there)


@pytest.mark.parametrize(
    ("spec", "addresses"),
    [
        ('{"vendor_id": "8086"}', ["0000:01:00.0", "0000:02:00.0"]),
        ('{"vendor_id": "1234"}', []),
        ('{"address": "0000:01:*"}', ["0000:01:00.0"]),
        ('{"address": "02:00.0", "product_id": "154D"}', ["0000:02:00.0"]),
        ('[{"address": "0000:02:00.0"}, {"vendor_id": "*"}]', ["0000:01:00.0", "0000:02:00.0"]),
    ],
)
def test_specifications_decide_which_devices_are_for_guests(spec: str, addresses: list[str]) -> None:
    found = devices_for_guests([device(1), device(2)], device_specs([spec]))
    assert [each.address for each in found] == addresses


def test_further_keys_of_a_specification_are_properties_of_its_devices() -> None:
    (found,) = devices_for_guests([device(1)], device_specs(['{"vendor_id": "8086", "physical_network": "physnet1"}']))
    assert found.extra_info == {"physical_network": "physnet1"}
    with pytest.raises(ValueError, match="device_spec"):
        device_specs(["no json"])
