"""Volumes that a user gave to a server whose build failed are reserved for it until it is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway.audit import audit_embedded
from tests.functional.servers.build_and_delete.test_what_builds_leave import (
    RESERVE,
    ask_for,
    failed,
    from_image,
    is_deleted,
    local_root,
    volumes_of_all,
)
from tests.functional.servers.dying_threads import SOON_TAKEN_OVER, THREADS_DIE
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD = SOON_TAKEN_OVER
pytestmark = [*THREADS_DIE, pytest.mark.usefixtures("other")]


@pytest.fixture
def volume(cloud: Cloud) -> Iterator[Any]:
    with cloud.own_volume() as volume:
        yield volume


def given(volume: Any, **fields: Any) -> dict[str, Any]:
    return {"boot_index": -1, "source_type": "volume", "destination_type": "volume", "uuid": volume.id} | fields


def no_host_will_do(cloud: Cloud) -> None:
    """From now on, whatever is built finds no host."""
    for service in cloud.admin.compute.services(binary="nova-compute"):
        cloud.admin.compute.disable_service(service, service.host, service.binary)


def every_host_fails(cloud: Cloud) -> None:
    """The hosts have connected the volume by then."""
    cloud.break_driver(list(cloud.parts.computes), "spawn")


@pytest.fixture(params=[no_host_will_do, every_host_fails])
def broken(request: pytest.FixtureRequest, cloud: Cloud) -> Iterator[None]:
    request.param(cloud)
    yield
    for service in cloud.admin.compute.services(binary="nova-compute"):
        cloud.admin.compute.enable_service(service, service.host, service.binary)
    cloud.heal()


def is_kept(cloud: Cloud, server: Any, volume: Any) -> None:
    """The server has one reservation of the volume, and shows it; nobody else can take the volume."""
    (held,) = cloud.attachments(server)
    assert (held["status"], held["volume_id"]) == ("reserved", volume.id)
    shown = {each.volume_id: each.attachment_id for each in cloud.member.compute.volume_attachments(server)}
    assert shown[volume.id] == held["id"]
    assert cloud.member.block_storage.get_volume(volume).status == "reserved"


def is_free_when_the_server_goes(cloud: Cloud, server: Any, volume: Any) -> None:
    is_deleted(cloud, server)
    cloud.volume_becomes(volume, "available")
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


@pytest.mark.usefixtures("broken")
def test_a_volume_of_a_failed_build_is_kept_and_free_when_its_server_is_deleted(cloud: Cloud, volume: Any) -> None:
    """1899649 on Launchpad."""
    server = ask_for(cloud, local_root(cloud), given(volume))
    failed(cloud, server)
    is_kept(cloud, server, volume)
    is_free_when_the_server_goes(cloud, server, volume)


@pytest.mark.usefixtures("broken")
def test_a_volume_that_was_made_for_the_server_is_not_kept(cloud: Cloud, volume: Any) -> None:
    before = volumes_of_all(cloud)
    server = ask_for(cloud, from_image(cloud), given(volume))
    failed(cloud, server)
    until(lambda: volumes_of_all(cloud), lambda left: left == before, "the volume to go")
    is_kept(cloud, server, volume)
    is_free_when_the_server_goes(cloud, server, volume)


def test_one_that_is_deleted_with_the_server_is_there_until_then(cloud: Cloud) -> None:
    volume = cloud.volume()
    every_host_fails(cloud)
    server = ask_for(cloud, local_root(cloud), given(volume, delete_on_termination=True))
    failed(cloud, server)
    is_kept(cloud, server, volume)
    is_deleted(cloud, server)
    cloud.volume_goes(volume)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("end", ["request", "reply"])
def test_a_conductor_that_dies_while_it_keeps_the_volume_leaves_one_reservation(
    cloud: Cloud, volume: Any, dies_at: Any, end: str
) -> None:
    dies_at(f"{RESERVE}.{end}")
    server = ask_for(cloud, local_root(cloud), given(volume))
    failed(cloud, server)
    is_kept(cloud, server, volume)
    is_free_when_the_server_goes(cloud, server, volume)


def test_a_server_that_is_deleted_meanwhile_has_no_volume(cloud: Cloud, volume: Any, at_point: Any) -> None:
    no_host_will_do(cloud)
    server: list[Any] = []

    def delete() -> None:
        found = until(lambda: list(cloud.member.compute.servers(details=False)), bool, "the server to be there")
        cloud.member.compute.delete_server(found[0])

    at_point(f"{RESERVE}.reply", delete)
    server.append(ask_for(cloud, local_root(cloud), given(volume)))
    until(lambda: cloud.attachments(server[0]), lambda held: not held, "the volume to be free")
    for service in cloud.admin.compute.services(binary="nova-compute"):
        cloud.admin.compute.enable_service(service, service.host, service.binary)
    cloud.volume_becomes(volume, "available")
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_one_that_another_server_has_got_stays_with_that(cloud: Cloud, volume: Any, at_point: Any) -> None:
    other = cloud.boot()
    at_point("rpc.scheduler.select_destinations.reply", lambda: cloud.attach(other, volume))
    server = ask_for(cloud, local_root(cloud), given(volume, delete_on_termination=True))
    failed(cloud, server)
    (shown,) = cloud.member.compute.volume_attachments(server)
    assert shown.attachment_id is None and cloud.attachments(server) == []
    is_deleted(cloud, server)
    (held,) = cloud.attachments(other)
    assert (held["status"], held["volume_id"]) == ("attached", volume.id)
    cloud.member.compute.delete_volume_attachment(other, volume.id)
