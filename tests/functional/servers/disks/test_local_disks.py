"""Ephemeral disks and swap: made at build, carried or made anew by every move, and as before after a revert."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.store.cell import block_devices
from tests.functional.servers.moves_cloud import Cloud

BACKINGS = pytest.mark.parametrize("backing", ["image", "volume"])
REACHES = pytest.mark.parametrize("reach", ["cross", "same"])
ENDS = pytest.mark.parametrize("end", ["confirm", "revert"])
MIB = 1024


@pytest.fixture
def flavors(cloud: Cloud) -> dict[str, tuple[str, str]]:
    """reach -> (flavor to start with, flavor that has more of everything)."""
    found = {}
    for reach, (first, second) in {"cross": (1, 2), "same": (None, None)}.items():
        small = cloud.flavor(f"{reach}.disks", gen=first, ephemeral=1, swap=64)
        found[reach] = (small, cloud.flavor(f"{reach}.more", gen=second, ram=192, disk=2, ephemeral=3, swap=128))
    return found


def boot(cloud: Cloud, flavor: str, backing: str = "image", **fields: Any) -> Any:
    if backing == "volume":
        return cloud.boot_from_volume(flavor_id=flavor, **fields)
    return cloud.boot(flavor=flavor, **fields)


def disks(cloud: Cloud, server: Any) -> dict[str, int]:
    """device -> MiB of the guest's local disks beside its root disk."""
    found = cloud.driver(cloud.show(server).compute_host).guest_disks(server.id)
    return {device: size for device, size in found.items() if device != "vda"}


def write(cloud: Cloud, server: Any, device: str, text: str = "precious") -> None:
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, text, device)


def read(cloud: Cloud, server: Any, device: str) -> list[str]:
    return cloud.driver(cloud.show(server).compute_host).guest_read(server.id, device)


def mappings(cloud: Cloud, server: Any) -> list[tuple[Any, ...]]:
    """(device, guest format, size) of the records of ephemeral disks and swap."""
    cell = cloud.show(server).compute_host[:5]
    found = block_devices.of_instance(cloud.cell(cell), server.id)
    return sorted((each.device_name, each.guest_format, each.volume_size) for each in found if each.is_blank_local)


def finish(cloud: Cloud, server: Any, end: str) -> Any:
    return cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)


@BACKINGS
def test_a_new_server_has_the_disks_of_its_flavor(cloud: Cloud, flavors: Any, backing: str) -> None:
    server = boot(cloud, flavors["cross"][0], backing)
    assert disks(cloud, server) == {"vdb": MIB, "vdc": 64}
    assert mappings(cloud, server) == [("/dev/vdb", None, 1), ("/dev/vdc", "swap", 64)]
    # root (unless it is a volume), ephemeral, and swap rounded up
    (held,) = cloud.allocations(server.id).values()
    assert held["DISK_GB"] == {"image": 1, "volume": 0}[backing] + 1 + 1


@BACKINGS
@REACHES
@ENDS
def test_a_move_carries_ephemeral_disks_and_makes_swap_anew(
    cloud: Cloud, flavors: Any, backing: str, reach: str, end: str
) -> None:
    server = boot(cloud, flavors[reach][0], backing)
    for device in ("vdb", "vdc"):
        write(cloud, server, device)
    before = cloud.reality(server) | {"mappings": mappings(cloud, server), "disks": disks(cloud, server)}
    moved = cloud.resized(server, flavors[reach][1])

    assert (moved.compute_host[:5] != before["shown"][3][:5]) == (reach == "cross")
    assert disks(cloud, server) == {"vdb": 3 * MIB, "vdc": 128}
    assert "precious" in read(cloud, server, "vdb") and "precious" not in read(cloud, server, "vdc")
    # The server is shown on its target from the switch on; what was in between is deleted right after it.
    cloud.settle()
    assert cloud.temporary_images() == []
    write(cloud, server, "vdb", "written on the target")
    finish(cloud, server, end)

    if end == "confirm":
        # bug 1552777
        assert mappings(cloud, server) == [("/dev/vdb", None, 3), ("/dev/vdc", "swap", 128)]
        assert "written on the target" in read(cloud, server, "vdb")
    else:
        after = cloud.reality(server) | {"mappings": mappings(cloud, server), "disks": disks(cloud, server)}
        assert after | {"ports": None} == before | {"ports": None}
        assert "precious" in read(cloud, server, "vdb") and "precious" in read(cloud, server, "vdc")
        assert "written on the target" not in read(cloud, server, "vdb")


@REACHES
@ENDS
def test_swap_and_ephemeral_disk_come_with_the_new_flavor(cloud: Cloud, flavors: Any, reach: str, end: str) -> None:
    server = cloud.boot(flavor={"cross": "gen1.small", "same": "any.small"}[reach])
    assert mappings(cloud, server) == []
    cloud.resized(server, flavors[reach][1])
    assert disks(cloud, server) == {"vdb": 3 * MIB, "vdc": 128}
    finish(cloud, server, end)
    there = {"vdb": 3 * MIB, "vdc": 128} if end == "confirm" else {}
    assert disks(cloud, server) == there
    assert len(mappings(cloud, server)) == len(there)


@REACHES
@ENDS
def test_swap_goes_with_the_old_flavor(cloud: Cloud, flavors: Any, reach: str, end: str) -> None:
    without = cloud.flavor(f"{reach}.noswap", gen={"cross": 2}.get(reach), disk=2, ephemeral=1)
    server = boot(cloud, flavors[reach][0])
    cloud.resized(server, without)
    assert disks(cloud, server) == {"vdb": MIB}
    # The volume takes the name that swap had.
    volume = cloud.volume()
    cloud.attach(server, volume, device="/dev/vdc")
    finish(cloud, server, end)
    assert disks(cloud, server) == ({"vdb": MIB} if end == "confirm" else {"vdb": MIB, "vdd": 64})
    assert read(cloud, server, "vdc")[0].startswith("attached")


@REACHES
def test_disks_that_the_user_asked_for_move_along(cloud: Cloud, flavors: Any, reach: str) -> None:
    blank = {"source_type": "blank", "destination_type": "local"}
    devices = [
        {"source_type": "image", "destination_type": "volume", "uuid": cloud.image_id, "volume_size": 1, "boot_index": 0,
         "delete_on_termination": True},
        blank | {"volume_size": 1, "guest_format": "vfat"},
        blank | {"volume_size": 1},
        blank | {"volume_size": 32, "guest_format": "swap"},
    ]  # fmt: skip
    small = cloud.flavor(f"{reach}.two", gen={"cross": 1}.get(reach), ephemeral=2, swap=64)
    server = cloud.boot_from_volume(flavor_id=small, block_device_mapping=devices)
    assert disks(cloud, server) == {"vdb": MIB, "vdc": MIB, "vdd": 32}
    write(cloud, server, "vdb", "first")
    write(cloud, server, "vdc", "second")
    cloud.resized(server, flavors[reach][1])
    # Who divided the space keeps the parts.
    assert disks(cloud, server) == {"vdb": MIB, "vdc": MIB, "vdd": 128}
    assert "first" in read(cloud, server, "vdb") and "second" in read(cloud, server, "vdc")
    assert mappings(cloud, server)[0] == ("/dev/vdb", "vfat", 1)
    cloud.confirmed(server)


@REACHES
@pytest.mark.parametrize("smaller", ["root", "ephemeral"])
def test_a_smaller_disk_is_refused(cloud: Cloud, reach: str, smaller: str) -> None:
    gen = {"cross": 2}.get(reach)
    target = cloud.flavor(f"{reach}.less {smaller}", gen=gen, disk=1 if smaller == "root" else 2, ephemeral=1)
    large = {"root": {"disk": 2}, "ephemeral": {"disk": 1, "ephemeral": 2}}[smaller]
    source = cloud.flavor(f"{reach}.large {smaller}", gen={"cross": 1}.get(reach), **large)
    server = boot(cloud, source)
    before = cloud.reality(server)
    answer = cloud.admin.compute.get(f"/os-causeway/servers/{server.id}/move-candidates", params={"flavor": target})
    assert answer.json()["move_candidates"]["refusal"] == "Resize error: Unable to resize disk down."
    cloud.member.compute.resize_server(server.id, target)
    cloud.failed(server)
    cloud.settle()
    assert cloud.reality(server) == before
    (fault,) = cloud.faults(server, before["shown"][3][:5])
    assert (fault.code, fault.message) == (500, "Resize error: Unable to resize disk down.")


@REACHES
def test_the_root_disk_of_the_flavor_does_not_matter_to_a_server_on_a_volume(cloud: Cloud, reach: str) -> None:
    """Bug 1825020."""
    source = cloud.flavor(f"{reach}.root", gen={"cross": 1}.get(reach), disk=5)
    target = cloud.flavor(f"{reach}.noroot", gen={"cross": 2}.get(reach), disk=0)
    server = cloud.boot_from_volume(flavor_id=source)
    moved = cloud.resized(server, target)
    assert moved.flavor["original_name"] == target
    (held,) = cloud.allocations(server.id).values()
    assert "DISK_GB" not in held
    cloud.confirmed(server)


@pytest.mark.parametrize(
    ("reach", "broken"),
    [
        ("cross", "PUT"),
        ("cross", "GET"),
        ("cross", "export"),
        ("cross", "fetch"),
        ("same", "export"),
        ("same", "fetch"),
    ],
)
@pytest.mark.embedded("damages what computes offer")
def test_a_failed_move_leaves_no_image_and_restores_the_disks(
    cloud: Cloud, flavors: Any, reach: str, broken: str
) -> None:
    server = boot(cloud, flavors[reach][0], "volume")
    write(cloud, server, "vdb")
    cloud.without_patience()
    before = cloud.reality(server) | {"mappings": mappings(cloud, server), "disks": disks(cloud, server)}
    if broken in ("PUT", "GET"):
        cloud.without_rounds()
        cloud.fail("status", "/file$", method=broken, service="image", times=50)
    elif broken == "export":
        cloud.break_driver([cloud.show(server).compute_host], "open_changes", times=1)
    else:
        cloud.damage_offers()
        cloud.fail("status", "/images$", method="POST", service="image", times=50)
    cloud.member.compute.resize_server(server.id, flavors[reach][1])
    cloud.failed(server)
    cloud.settle()
    after = cloud.reality(server) | {"mappings": mappings(cloud, server), "disks": disks(cloud, server)}
    assert after | {"ports": None} == before | {"ports": None}
    assert "precious" in read(cloud, server, "vdb")


def test_a_hard_reboot_keeps_the_disks(cloud: Cloud, flavors: Any) -> None:
    server = boot(cloud, flavors["same"][0])
    write(cloud, server, "vdb")
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    assert disks(cloud, server) == {"vdb": MIB, "vdc": 64}
    assert "precious" in read(cloud, server, "vdb")
