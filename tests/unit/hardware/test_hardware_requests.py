"""What flavors and images ask for, and which of it contradicts itself. Messages are Nova's."""

from __future__ import annotations

import pytest

from causeway import errors
from causeway.conf import new_config
from causeway.hardware import cpus
from causeway.hardware.host import for_guests
from causeway.hardware.numa_request import dedicated_cpus, numa_topology
from causeway.hardware.pci_request import pci_requests
from causeway.hardware.requests import asked_of
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.numa import MEMPAGES_LARGE, NUMACell
from causeway.scheduler.resources import flavor_groups

NIC = '{"name": "nic", "vendor_id": "8086", "product_id": "154D", "numa_policy": "required"}'


def flavor(**specs: str) -> Flavor:
    return Flavor("f", "f", vcpus=4, memory_mb=1024, root_gb=1, extra_specs=_named(specs, ":"))


def image(**properties: str) -> ImageMeta:
    return ImageMeta("image", properties=_named(properties, "_"))


def _named(specs: dict[str, str], colon: str) -> dict[str, str]:
    return {"hw" + colon + name.replace("__", "."): value for name, value in specs.items()}


def test_who_does_not_care_asks_for_nothing() -> None:
    assert numa_topology(flavor(), image()) is None
    assert numa_topology(flavor(cpu_policy="shared"), None) is None
    assert not asked_of(new_config(), flavor(), None)


def test_cells_have_equal_parts_or_those_that_are_listed() -> None:
    equal = numa_topology(flavor(numa_nodes="2"), None)
    assert equal is not None
    assert [(cell.cpuset, cell.memory) for cell in equal.cells] == [([0, 1], 512), ([2, 3], 512)]
    lists = {"numa_cpus__0": "0-2", "numa_cpus__1": "3", "numa_mem__0": "256", "numa_mem__1": "768"}
    listed = numa_topology(flavor(numa_nodes="2", **lists), None)
    assert listed is not None
    assert [(cell.cpuset, cell.memory) for cell in listed.cells] == [([0, 1, 2], 256), ([3], 768)]


def test_pinned_and_mixed_cpus_and_pages_are_read() -> None:
    pinned = numa_topology(flavor(cpu_policy="dedicated", cpu_thread_policy="isolate"), None)
    assert pinned is not None and pinned.cells[0].pcpuset == [0, 1, 2, 3]
    by_image = numa_topology(flavor(mem_page_size="large"), image(cpu_policy="dedicated", mem_page_size="2MB"))
    assert by_image is not None and (by_image.num_pcpus, by_image.cells[0].pagesize) == (4, 2048)
    mixed = numa_topology(flavor(cpu_policy="mixed", cpu_dedicated_mask="^0"), None)
    assert mixed is not None and (mixed.cells[0].cpuset, mixed.cells[0].pcpuset) == ([0], [1, 2, 3])
    groups = flavor_groups(flavor(cpu_policy="mixed", cpu_dedicated_mask="1-3"), is_volume_backed=True)
    assert groups[""].resources == {
        "VCPU": 1,
        "PCPU": 3,
        "MEMORY_MB": 1024,
    }
    large = numa_topology(flavor(mem_page_size="large"), None)
    assert large is not None and large.cells[0].pagesize == MEMPAGES_LARGE


@pytest.mark.parametrize(
    ("specs", "properties", "message"),
    [
        ({"numa_nodes": "0"}, {}, "'numa_nodes' cannot be '0'"),
        # A digit, but no number.
        ({"numa_nodes": "²"}, {}, "'numa_nodes' cannot be '²'"),
        ({"numa_nodes": "1", "numa_cpus__0": "0-3", "numa_mem__0": "²"}, {}, "Invalid value '²'"),
        ({"numa_nodes": "3"}, {}, "cannot be evenly distributed"),
        ({"numa_nodes": "2"}, {"numa_nodes": "2"}, "'hw_numa_nodes' is not permitted to override NUMA"),
        ({"numa_nodes": "2", "numa_cpus__0": "0,1"}, {}, "must be provided for all NUMA nodes"),
        ({"numa_nodes": "1", "numa_cpus__0": "0-7", "numa_mem__0": "1024"}, {}, "CPU number 4 is larger than max 3"),
        (
            {"numa_nodes": "2", "numa_cpus__0": "0-3", "numa_cpus__1": "3", "numa_mem__0": "1", "numa_mem__1": "1"},
            {},
            "CPU number 3 is assigned to two nodes",
        ),
        ({"numa_nodes": "1", "numa_cpus__0": "0-2", "numa_mem__0": "1024"}, {}, r"\[3\] are not assigned to any node"),
        (
            {"numa_nodes": "1", "numa_cpus__0": "0-3", "numa_mem__0": "9"},
            {},
            "9 MB of memory assigned, but expected 1024",
        ),
        ({"numa_nodes": "1", "numa_cpus__0": "x", "numa_mem__0": "9"}, {}, "Invalid value 'x'"),
        ({"cpu_policy": "some"}, {}, "CPU policy requested from 'flavor extra specs' is invalid"),
        ({"cpu_policy": "shared"}, {"cpu_policy": "dedicated"}, "'hw_cpu_policy' is not permitted"),
        ({"cpu_thread_policy": "isolate"}, {}, "non dedicated cpu pinning policy"),
        (
            {"cpu_policy": "dedicated", "cpu_thread_policy": "isolate"},
            {"cpu_thread_policy": "require"},
            "'hw_cpu_thread_policy' is not permitted",
        ),
        ({"cpu_policy": "mixed"}, {}, "Must specify either"),
        ({"cpu_policy": "mixed", "cpu_dedicated_mask": "0-3"}, {}, "must name some, and not all"),
        ({"mem_page_size": "huge"}, {}, "Invalid memory page size 'huge'"),
        ({"mem_page_size": "small"}, {"mem_page_size": "2048"}, "Page size 2048 forbidden against 'small'"),
        ({}, {"mem_page_size": "2048"}, "Page size 2048 forbidden against '<empty>'"),
    ],
)
def test_flavors_and_images_that_contradict_one_another_are_refused(
    specs: dict[str, str], properties: dict[str, str], message: str
) -> None:
    with pytest.raises(errors.BadRequest, match=message):
        numa_topology(flavor(**specs), image(**properties))


def test_a_flavor_that_contradicts_itself_pins_nothing() -> None:
    assert dedicated_cpus(flavor(cpu_policy="some"), None) == 0


def test_pci_aliases_name_devices() -> None:
    asking = Flavor("f", "f", 1, 1, 1, extra_specs={"pci_passthrough:alias": "nic:2, gpu:1"})
    gpu = ['{"name": "gpu", "vendor_id": "10de"}', '{"name": "gpu", "vendor_id": "1002", "device_type": "type-PF"}']
    nic, graphics = pci_requests(asking, [NIC, *gpu])
    assert (nic.count, nic.spec, nic.numa_policy) == (2, [{"vendor_id": "8086", "product_id": "154d"}], "required")
    assert graphics.spec == [{"vendor_id": "10de"}, {"vendor_id": "1002", "dev_type": "type-PF"}]
    assert pci_requests(asking, [NIC, *gpu]) == [nic, graphics]
    with pytest.raises(errors.BadRequest, match="'nic:²' has no number of devices"):
        pci_requests(Flavor("f", "f", 1, 1, 1, extra_specs={"pci_passthrough:alias": "nic:²"}), [NIC])
    with pytest.raises(errors.BadRequest, match="PCI alias gpu is not defined"):
        pci_requests(asking, [NIC])
    with pytest.raises(errors.BadRequest, match="Invalid PCI alias definition"):
        pci_requests(asking, ["{}"])


@pytest.mark.parametrize(("text", "found"), [("0-3,^2,8", {0, 1, 3, 8}), ("", set()), (" 1 , 2-2 ", {1, 2})])
def test_cpu_lists_are_read_and_written(text: str, found: set[int]) -> None:
    assert cpus.parse(text) == found
    assert cpus.parse(cpus.text(found)) == found


@pytest.mark.parametrize("text", ["a", "1-", "3-1", "-1", "1 2"])
def test_what_is_no_cpu_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="CPU"):
        cpus.parse(text)


def test_the_options_decide_which_cpus_are_for_guests() -> None:
    cells = [NUMACell(0, [0, 1], [], 64), NUMACell(1, [2, 3], [], 64)]
    every = for_guests(cells, dedicated=None, shared=None)
    assert [(cell.cpuset, cell.pcpuset) for cell in every.cells] == [([0, 1], []), ([2, 3], [])]
    pinned = for_guests(cells, dedicated="1-2", shared=None)
    assert [(cell.cpuset, cell.pcpuset) for cell in pinned.cells] == [([], [1]), ([], [2])]
    for dedicated, shared, reason in (
        ("1", "1", "both name CPU 1"),
        ("4", None, "CPU 4, which the host does not have"),
    ):
        with pytest.raises(ValueError, match=reason):
            for_guests(cells, dedicated=dedicated, shared=shared)
