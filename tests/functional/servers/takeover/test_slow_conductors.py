"""A conductor that was only slow continues with what another one has taken over and ended."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.conductor.service import ConductorService
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.slow_conductors import SHORT_LEASES, Hold, proceed, take_over_at, wake

CLOUD = SHORT_LEASES
pytestmark = [pytest.mark.embedded("a thread of this process is held"), pytest.mark.usefixtures("other")]


def disagreements(cloud: Cloud, server: Any) -> list[Any]:
    """What `causeway audit` says of a server."""
    return [each for each in audit_embedded(cloud.parts, pause=0.01).disagreements if each.server == server.id]


@pytest.mark.parametrize("side", ["request", "reply"])
def test_a_shelved_volume_has_the_attachment_that_its_record_names(
    cloud: Cloud, at_point: Any, other: ConductorService, side: str
) -> None:
    server = cloud.boot_from_volume()
    hold = Hold(at_point, f"call.volume POST /v3/attachments.{side}")
    cloud.member.compute.shelve_server(server.id)
    take_over_at(cloud, other, hold, server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    proceed(cloud, other, hold)
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
    cloud.member.compute.unshelve_server(server.id)
    assert cloud.wait(server, "ACTIVE").attached_volumes


@pytest.mark.parametrize(
    "point", ["rpc.scheduler.select_destinations.request", "rpc.scheduler.select_destinations.reply"]
)
def test_an_unshelved_server_is_on_the_host_that_its_record_names(
    cloud: Cloud, at_point: Any, other: ConductorService, point: str
) -> None:
    server = cloud.boot_from_volume(flavor_id="any.small")
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()
    hold = Hold(at_point, point)
    cloud.member.compute.unshelve_server(server.id)
    take_over_at(cloud, other, hold, server.id)
    cloud.wait(server, "ACTIVE")
    proceed(cloud, other, hold)
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
    assert cloud.hosts_of(server) == {cloud.show(server).compute_host: "guest"}


@pytest.mark.parametrize("side", ["request", "reply"])
@pytest.mark.parametrize("gen", [1, 2], ids=["inside-a-cell", "across-cells"])
def test_a_revert_that_another_conductor_has_done_leaves_no_reservation(
    cloud: Cloud, at_point: Any, other: ConductorService, gen: int, side: str
) -> None:
    """The volume was attached since the resize, so the revert reserves it for the source."""
    server, volume = cloud.boot(), cloud.volume()
    cloud.resized(server, cloud.flavor(f"gen{gen}.late", gen=gen))
    cloud.attach(server, volume)
    hold = Hold(at_point, f"call.volume POST /v3/attachments.{side}")
    cloud.member.compute.revert_server_resize(server.id)
    take_over_at(cloud, other, hold, server.id)
    cloud.wait(server, "ACTIVE")
    proceed(cloud, other, hold)
    until(lambda: len(cloud.attachments(server)), lambda count: count == 1, "the late reservation to be deleted")
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_what_came_too_late_is_undone_when_the_next_operation_has_ended(
    cloud: Cloud, at_point: Any, other: ConductorService, caplog: pytest.LogCaptureFixture
) -> None:
    """While another operation works on the server, what is there may belong to that one."""
    server, volume = cloud.boot(), cloud.volume()
    cloud.resized(server, cloud.flavor("gen1.late", gen=1))
    cloud.attach(server, volume)
    slow = Hold(at_point, "call.volume POST /v3/attachments.request")
    cloud.member.compute.revert_server_resize(server.id)
    take_over_at(cloud, other, slow, server.id)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    next_one = Hold(at_point, "rpc.compute.remove_guest.request")
    cloud.member.compute.shelve_server(server.id)
    assert next_one.reached.wait(10)
    with caplog.at_level(logging.INFO, "causeway.sagas.late"):
        wake(cloud, slow)
        until(lambda: caplog.text, lambda text: "is undone later" in text, "the undo to meet the shelve")
    assert len(cloud.attachments(server)) == 2
    next_one.opened.set()
    cloud.wait(server, "SHELVED_OFFLOADED")
    until(lambda: len(cloud.attachments(server)), lambda count: count == 1, "the late reservation to be deleted")
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


@pytest.mark.parametrize("then", ["detach", "detach-again", "delete"])
def test_a_volume_that_was_connected_too_late_for_a_live_migration_is_released_with_the_other_attachment(
    cloud: Cloud, at_point: Any, other: ConductorService, then: str
) -> None:
    """Not before: block storage may end the connection that the guest uses. The audit reports it meanwhile."""
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume)
    hold = Hold(at_point, "call.volume POST /v3/attachments.request")
    with ThreadPoolExecutor(1) as users:
        users.submit(cloud.admin.compute.live_migrate_server, server.id, host=None, block_migration="auto")
        take_over_at(cloud, other, hold, server.id)
        cloud.settle()
    proceed(cloud, other, hold)
    assert len(cloud.attachments(server)) == 2
    assert {each.kind for each in disagreements(cloud, server)} >= {"attachment.orphaned"}
    if then == "detach-again":
        # As if a conductor had died in the middle of a detach: the recorded attachment is deleted already.
        (mapping,) = cloud.admin.compute.volume_attachments(server)
        cloud.admin.block_storage.delete(f"/attachments/{mapping.attachment_id}", microversion="3.70")
    if then.startswith("detach"):
        cloud.detach(server, volume)
    else:
        cloud.member.compute.delete_server(server.id)
        cloud.member.compute.wait_for_delete(server)
    until(lambda: cloud.attachments(server), lambda found: not found, "both attachments to be deleted")
    assert cloud.member.block_storage.get_volume(volume.id).status == "available"


@pytest.mark.parametrize("side", ["request", "reply"])
def test_a_port_that_is_said_too_late_to_go_live_is_said_to_stay(
    cloud: Cloud, at_point: Any, other: ConductorService, side: str
) -> None:
    server = cloud.boot()
    (port,) = cloud.ports(server)
    hold = Hold(at_point, f"call.network PUT /v2.0/ports/{{port_id}}.{side}")
    with ThreadPoolExecutor(1) as users:
        users.submit(cloud.admin.compute.live_migrate_server, server.id, host=None, block_migration="auto")
        take_over_at(cloud, other, hold, server.id)
        cloud.settle()
    proceed(cloud, other, hold)
    until(
        lambda: cloud.admin.network.get_port(port).binding_profile,
        lambda found: "migrating_to" not in found,
        "the late announcement to be deleted",
    )
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


@pytest.mark.parametrize("kind", ["volume", "port"])
def test_the_answer_to_an_attach_that_was_taken_over_says_what_to_do(
    cloud: Cloud, at_point: Any, other: ConductorService, kind: str
) -> None:
    """The other conductor undoes it, because nobody knew whether its user would learn of its end."""
    # The whole takeover happens while the API waits for the answer.
    cloud.option("rpc_response_timeout", 60)
    server, volume = cloud.boot(), cloud.volume()
    path, body = f"/servers/{server.id}/os-interface", {"interfaceAttachment": {"net_id": cloud.network_id}}
    if kind == "volume":
        path, body = f"/servers/{server.id}/os-volume_attachments", {"volumeAttachment": {"volumeId": volume.id}}
    before = cloud.reality(server)
    hold = Hold(at_point, "rpc.compute.connect_volume.reply" if kind == "volume" else "rpc.compute.plug_port.reply")
    with ThreadPoolExecutor(1) as users:
        asked = users.submit(cloud.member.compute.post, path, json=body, microversion="2.94")
        take_over_at(cloud, other, hold, server.id)
        cloud.settle()
        proceed(cloud, other, hold)
        answer = asked.result(30)
    assert answer.status_code == 409, answer.text
    assert "Try again" in answer.text and "continues" not in answer.text
    assert cloud.reality(server) == before
    assert cloud.member.compute.post(path, json=body, microversion="2.94").status_code == 200
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
