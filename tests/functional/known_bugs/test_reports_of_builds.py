"""Reports of builds that failed, or whose servers were deleted meanwhile, from people who run OpenStack.

Numbers are bugs on Launchpad; cluster-api-provider-openstack#N is an issue of kubernetes-sigs/cluster-api-provider-openstack
on GitHub. See docs/known-bugs.md, section 8.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import PATIENCE, until

from .known_bugs_cloud import ALL_HOSTS, KnownBugsCloud


@pytest.fixture
def huge(cloud: KnownBugsCloud) -> Iterator[str]:
    """A flavor that no host has room for."""
    with cloud.passing_flavor("huge", ram=99_999_999, vcpus=500) as flavor:
        yield flavor


def given(volume: Any, boot_index: int, *, doomed: bool = False) -> dict[str, Any]:
    """A user's own volume as a device of a new server; ``doomed``: it is deleted with the server."""
    return {
        "uuid": volume.id,
        "source_type": "volume",
        "destination_type": "volume",
        "boot_index": boot_index,
        "delete_on_termination": doomed,
    }


def test_a_server_that_no_host_takes_has_its_history_and_its_tags(cloud: KnownBugsCloud, huge: str) -> None:
    """1852458, 1806515: the record that says why it failed has all that a record of a server has."""
    server = cloud.ask_for(flavor_id=huge, tags=["one", "two"])
    failed = cloud.wait(server, "ERROR")
    assert "No valid host" in failed.fault["message"]
    assert sorted(failed.tags) == ["one", "two"]
    assert cloud.actions(server) == ["create"]
    assert [result for _event, result in cloud.events(server, "create")] == ["Error"]
    assert [each.id for each in cloud.member.compute.servers(tags="one,two")] == [server.id]
    cloud.member.compute.delete_server(server.id)
    cloud.gone(server)


@pytest.mark.parametrize("doomed", [False, True], ids=["kept", "doomed"])
def test_volumes_of_a_server_that_no_host_takes_are_nobody_elses(
    cloud: KnownBugsCloud, huge: str, *, doomed: bool
) -> None:
    """1899649, 1404867, 1806064: else the delete of the failed server would take a volume that another one has by then."""
    other = cloud.boot(networks="none")
    root, data = cloud.volume(image_id=cloud.image_id), cloud.volume()
    devices = [given(root, 0, doomed=doomed), given(data, -1, doomed=doomed)]
    server = cloud.ask_for(flavor_id=huge, block_device_mapping=devices)
    cloud.wait(server, "ERROR")
    for volume in (root, data):
        assert cloud.member.block_storage.get_volume(volume.id).status == "reserved"
        body = {"volumeAttachment": {"volumeId": volume.id}}
        assert cloud.member.compute.post(f"/servers/{other.id}/os-volume_attachments", json=body).status_code == 400
    cloud.member.compute.delete_server(server.id)
    cloud.gone(server)
    assert cloud.attachments(server) == []
    for volume in (root, data):
        if doomed:
            cloud.volume_goes(volume)
        else:
            assert cloud.volume_becomes(volume, "available").attachments == []
    assert list(cloud.member.compute.volume_attachments(other.id)) == []


@pytest.mark.parametrize("moment", ["select_destinations", "build_guest", "spawn"])
@pytest.mark.embedded("holds a hypervisor")
def test_a_server_that_is_deleted_while_it_is_built_leaves_its_volume_free(
    cloud: KnownBugsCloud, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """2088066: while a host is chosen, before the host hears of it, and while the hypervisor is at it."""
    root = cloud.volume(image_id=cloud.image_id)

    def build() -> Any:
        return cloud.ask_for(block_device_mapping=[given(root, 0)])

    if moment == "spawn":
        begun, deleted = threading.Event(), threading.Event()
        for host in ALL_HOSTS:
            works = cloud.driver(host).spawn

            def spawn(*order: Any, works: Any = works, **named: Any) -> Any:
                begun.set()
                assert deleted.wait(PATIENCE)
                return works(*order, **named)

            monkeypatch.setattr(cloud.driver(host), "spawn", spawn)
        server = build()
        assert begun.wait(PATIENCE)
        cloud.member.compute.delete_server(server.id)
        deleted.set()
    else:
        with cloud.held(moment) as reached:
            server = build()
            assert reached.wait(PATIENCE)
            cloud.member.compute.delete_server(server.id)
    cloud.gone(server)
    assert cloud.volume_becomes(root, "available").attachments == []
    until(
        lambda: (cloud.attachments(server), cloud.allocations(server.id), cloud.hosts_of(server), cloud.ports(server)),
        lambda left: left == ([], {}, {}, {}),
        "all to go",
    )


def nothing(_cloud: KnownBugsCloud) -> None:
    """The flavor is too large already."""


def the_hypervisor_refuses(cloud: KnownBugsCloud) -> None:
    cloud.break_driver(list(ALL_HOSTS), "spawn")


def no_port_is_bound(cloud: KnownBugsCloud) -> None:
    cloud.fail("status", "/ports/", service="network", method="PUT", status=409)


def the_image_can_not_be_read(cloud: KnownBugsCloud) -> None:
    cloud.fail("status", "/file$", service="image", method="GET", status=404)


@pytest.mark.parametrize(
    "fails",
    [nothing, the_hypervisor_refuses, no_port_is_bound, the_image_can_not_be_read],
    ids=lambda act: act.__name__,
)
def test_a_port_outlives_the_server_that_could_not_be_built_with_it(
    cloud: KnownBugsCloud, huge: str, fails: Callable[[KnownBugsCloud], None]
) -> None:
    """cluster-api-provider-openstack#1404, #1062: its owner can delete it, and a port that was made for the server is gone."""
    cloud.needs_devcloud("services around refuse what they are asked for")
    port = cloud.member.network.create_port(network_id=cloud.network_id, name="machine")
    # One that no host has a copy of.
    image = cloud.image_with("fresh")
    cloud.without_patience()
    fails(cloud)
    server = cloud.ask_for(
        flavor_id=huge if fails is nothing else "any.small",
        image_id=image.id,
        networks=[{"port": port.id}, {"uuid": cloud.network_id}],
    )
    cloud.wait(server, "ERROR")
    cloud.heal()
    cloud.member.compute.delete_server(server.id)
    cloud.gone(server)
    left = cloud.admin.network.get_port(port.id)
    assert (left.device_id, left.binding_host_id) == ("", "")
    assert list(cloud.admin.network.ports(device_id=server.id)) == []
    cloud.member.network.delete_port(port, ignore_missing=False)
    cloud.member.image.delete_image(image)
