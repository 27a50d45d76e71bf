"""Flavors that moves meet: deleted since, without disks, with traits, resources and groups."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterator
from typing import Any

import pytest

from causeway.clients.placement.types import Inventory
from tests.functional.servers.moves_cloud import Cloud

REACHES = pytest.mark.parametrize("reach", ["cross", "same"])


def gen(reach: str, number: int) -> int | None:
    return number if reach == "cross" else None


@REACHES
@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_a_move_survives_the_delete_of_its_flavors(cloud: Cloud, reach: str, end: str) -> None:
    """The server keeps what its flavor was, and both flavors for the time of a resize."""
    old = cloud.flavor("old", gen=gen(reach, 1), ram=144)
    new = cloud.flavor("new", gen=gen(reach, 2), ram=160)
    server = cloud.boot(flavor=old)
    cloud.admin.compute.delete_flavor(old)
    before = cloud.reality(server)
    moved = cloud.resized(server, new)
    assert (moved.flavor["original_name"], moved.flavor["ram"]) == (new, 160)
    cloud.admin.compute.delete_flavor(new)
    (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    after = cloud.show(server)
    assert (after.flavor["original_name"], after.flavor["ram"]) == ((new, 160) if end == "confirm" else (old, 144))
    if end == "revert":
        assert cloud.reality(server) | {"ports": None} == before | {"ports": None}
    # It can still be moved, and rebooted.
    cloud.admin.compute.migrate_server(server.id)
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.confirmed(server)
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")


@REACHES
@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_a_server_on_a_volume_goes_from_one_flavor_without_disk_to_another(cloud: Cloud, reach: str, end: str) -> None:
    first = cloud.flavor(f"{reach}.diskless", gen=gen(reach, 1), disk=0)
    second = cloud.flavor(f"{reach}.diskless.more", gen=gen(reach, 2), disk=0, ram=192)
    server = cloud.boot_from_volume(flavor_id=first)
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, "precious")
    cloud.resized(server, second)
    after = (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    assert "precious" in cloud.driver(after.compute_host).guest_read(server.id)
    (held,) = cloud.allocations(server.id).values()
    assert set(held) == {"VCPU", "MEMORY_MB"}


def test_a_server_on_an_image_never_gets_a_flavor_without_disk(cloud: Cloud) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    answer = cloud.member.compute.post(
        f"/servers/{server.id}/action", json={"resize": {"flavorRef": cloud.flavor("diskless", disk=0)}}
    )
    assert answer.status_code == 400
    assert answer.json()["badRequest"]["message"] == "Resize to zero disk flavor is not allowed."
    assert cloud.reality(server) == before


@pytest.fixture
def special(cloud: Cloud) -> Iterator[dict[str, str]]:
    """One host of each cell has the trait CUSTOM_FAST and two graphics cards, a nested provider each."""
    placement = cloud.parts.around.placement
    hosts = {"cross": "cell2-host2", "same": "cell1-host2"}
    made = []
    for host in hosts.values():
        (root,) = placement.list_providers(name=host)
        placement.change_traits(root.uuid, add={"CUSTOM_FAST"})
        for number in (1, 2):
            card = placement.ensure_provider(str(uuids.uuid4()), f"{host}_card{number}", parent_uuid=root.uuid)
            placement.set_inventory(card.uuid, {"CUSTOM_CARD": Inventory(1)})
            made.append(card.uuid)
    yield hosts
    cloud.clean()
    for host in hosts.values():
        (root,) = placement.list_providers(name=host)
        placement.change_traits(root.uuid, remove={"CUSTOM_FAST"})
    for card in made:
        placement.delete_provider(card)


WANTED: dict[str, dict[str, str]] = {
    "trait": {"trait:CUSTOM_FAST": "required"},
    "resource": {"resources:CUSTOM_CARD": "1"},
    "group": {"resources1:CUSTOM_CARD": "1", "resources2:CUSTOM_CARD": "1", "group_policy": "isolate"},
    "trait of a group": {"resources_CPU:VCPU": "1", "resources:VCPU": "0", "trait_CPU:CUSTOM_FAST": "required"},
}


@REACHES
@pytest.mark.parametrize("what", WANTED)
def test_extra_specs_decide_where_a_move_goes(cloud: Cloud, special: dict[str, str], reach: str, what: str) -> None:
    cells = {"aggregate_instance_extra_specs:gen": {"cross": "2", "same": "1"}[reach]}
    flavor = cloud.admin.compute.create_flavor(name=f"special {reach} {what}", ram=192, vcpus=1, disk=1)
    cloud.admin.compute.create_flavor_extra_specs(flavor, WANTED[what] | cells)
    for end in ("revert", "confirm"):
        server = boot_at(cloud, "cell1-host1")
        moved = cloud.resized(server, flavor.id)
        assert moved.compute_host == special[reach]
        held = cloud.allocations(server.id)
        cards = sum(amounts.get("CUSTOM_CARD", 0) for amounts in held.values())
        assert cards == {"resource": 1, "group": 2}.get(what, 0)
        (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
        if end == "revert":
            assert list(cloud.allocations(server.id)) == ["cell1-host1"]
        cloud.clean()
    cloud.admin.compute.delete_flavor(flavor)


def boot_at(cloud: Cloud, host: str) -> Any:
    server = cloud.admin.compute.create_server(
        name="server",
        flavor_id="gen1.small",
        image_id=cloud.image_id,
        networks=[{"uuid": cloud.network_id}],
        host=host,
    )
    return cloud.wait(server, "ACTIVE")


def test_more_than_there_is_fits_nowhere(cloud: Cloud, special: dict[str, str]) -> None:  # noqa: ARG001
    flavor = cloud.admin.compute.create_flavor(name="greedy", ram=192, vcpus=1, disk=1)
    specs = {f"resources{number}:CUSTOM_CARD": "1" for number in (1, 2, 3)} | {"group_policy": "isolate"}
    cloud.admin.compute.create_flavor_extra_specs(flavor, specs)
    server = cloud.boot()
    before = cloud.reality(server)
    cloud.member.compute.resize_server(server.id, flavor.id)
    cloud.failed(server)
    assert cloud.reality(server) == before
    # Placement knows it before any filter is asked.
    assert "CUSTOM_CARD" in cloud.faults(server)[-1].message
    cloud.admin.compute.delete_flavor(flavor)
