"""A host is dead for good: an operator says so, moves and deletes continue without it, and it is cleaned when it comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openstack.exceptions import ConflictException

from causeway.conductor.upkeep.auto_confirm import AutoConfirm
from causeway.model.sagas import SagaState
from causeway.moves.dead_hosts import IS_DEAD
from causeway.moves.steps import hand_over, images
from causeway.rpc.transport import Outgoing, Verdict
from tests.functional.servers.dead_hosts import (
    CLOUD,
    FINISH,
    FLAVORS,
    HAND_OVER,
    PREPARE,
    REACHES,
    cleaned,
    come_back,
    dies_when,
    fault_of,
    left_on,
    moved,
    runs_on,
)
from tests.functional.servers.moves_cloud import Cloud, until

__all__ = ["CLOUD"]

pytestmark = [pytest.mark.embedded("stops compute services and starts them again"), pytest.mark.usefixtures("dead")]


@REACHES
def test_a_revert_continues_without_a_target_that_is_dead(cloud: Cloud, dead: Callable[..., None], reach: str) -> None:
    server, source, target = moved(cloud, reach)
    dead(target, fenced=False)
    fault = fault_of(cloud, server, cloud.member.compute.revert_server_resize)
    assert f"openstack compute service set --down {target}" in fault.details
    dead(target)
    found = cloud.reverted(server)
    assert (found.status, found.compute_host) == ("ACTIVE", source)
    assert "precious" in cloud.driver(source).guest_read(server.id)
    assert left_on(cloud, target) == ["drop_move_at_dest" if reach == "cross" else "revert_resize"]
    come_back(cloud, target)
    # Before it takes any order.
    assert cloud.hosts_of(server) == {source: "guest"}
    assert left_on(cloud, target) == []


@REACHES
def test_a_guest_that_still_runs_on_a_host_that_was_called_dead_is_destroyed(
    cloud: Cloud, dead: Callable[..., None], reach: str
) -> None:
    server, source, target = moved(cloud, reach)
    dead(target)
    found = cloud.reverted(server)
    runs_on(cloud, target, server)
    come_back(cloud, target)
    assert cloud.driver(source).running_anywhere(server.id) == [source] == [found.compute_host]
    assert cloud.hosts_of(server) == {source: "guest"}


@REACHES
def test_a_confirm_continues_without_a_source_that_is_dead(cloud: Cloud, dead: Callable[..., None], reach: str) -> None:
    server, source, target = moved(cloud, reach)
    dead(source, fenced=False)
    with pytest.raises(ConflictException, match="down"):
        cloud.member.compute.confirm_server_resize(server.id)
    dead(source)
    found = cloud.confirmed(server)
    assert (found.status, found.compute_host) == ("ACTIVE", target)
    assert cloud.migration(server).status == "confirmed"
    assert len(left_on(cloud, source)) == 1
    come_back(cloud, source)
    assert cloud.hosts_of(server) == {target: "guest"}
    assert left_on(cloud, source) == []


@REACHES
@pytest.mark.parametrize("fenced", [True, False])
def test_nothing_is_confirmed_while_the_host_that_keeps_the_server_is_down(
    cloud: Cloud, dead: Callable[..., None], reach: str, fenced: bool
) -> None:
    server, source, target = moved(cloud, reach)
    dead(target, fenced=fenced)
    fault_of(cloud, server, cloud.member.compute.confirm_server_resize)
    assert "stashed" in cloud.hosts_of(server)[source]


@REACHES
@pytest.mark.parametrize("which", ["source", "target"])
def test_a_server_in_verify_resize_is_deleted_without_a_dead_host(
    cloud: Cloud, dead: Callable[..., None], reach: str, which: str
) -> None:
    server, source, target = moved(cloud, reach)
    host = source if which == "source" else target
    dead(host)
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.member.compute.find_server(server.id), lambda found: found is None, "the server to go")
    cloud.settle()
    assert set(cloud.hosts_of(server)) == {host}
    come_back(cloud, host)
    assert cloud.hosts_of(server) == {}
    assert left_on(cloud, host) == []


@REACHES
def test_a_target_that_dies_before_it_is_prepared_is_left_for_the_next(
    cloud: Cloud, dead: Callable[..., None], reach: str
) -> None:
    """Nobody waits for it until patience is over, nor asks it again."""
    server = cloud.boot(flavor=FLAVORS[reach][0])
    asked: list[str] = []

    def look(message: Outgoing) -> Verdict:
        if message.method != PREPARE:
            return Verdict.DELIVER
        asked.append(message.server or "")
        if len(asked) > 1:
            return Verdict.DELIVER
        dead(message.server)
        return Verdict.LOSE_REQUEST

    cloud.parts.around.transports.on_send = look
    if reach == "cross":
        moved = cloud.resized(server, FLAVORS[reach][1])
        assert [moved.compute_host] == asked[1:] != asked[:1]
        return
    cloud.member.compute.resize_server(server.id, FLAVORS[reach][1])
    # There is no other host than the one where the server is.
    home = cloud.failed(server).compute_host.partition("-")[0]
    assert len(asked) == 1
    assert "is dead" in cloud.faults(server, home)[-1].message


@REACHES
def test_a_move_whose_target_dies_is_undone_without_it(cloud: Cloud, dead: Callable[..., None], reach: str) -> None:
    server = cloud.boot(flavor=FLAVORS[reach][0])
    source = cloud.show(server).compute_host
    cloud.driver(source).guest_write(server.id, "precious")
    dies_when(cloud, dead, FINISH, Verdict.LOSE_REQUEST, fenced=True)
    cloud.member.compute.resize_server(server.id, FLAVORS[reach][1])
    cloud.failed(server)
    cloud.settle()
    found = cloud.show(server)
    assert (found.status, found.compute_host) == ("ACTIVE", source)
    assert "precious" in cloud.driver(source).guest_read(server.id)
    target = cloud.migration(server).dest_compute
    assert left_on(cloud, target) == [
        "drop_move_at_dest" if reach == "cross" else "revert_resize",
        "discard_copies",
    ]
    come_back(cloud, target)
    # Whether the copies can go is asked of the source, and the target does not wait for that when it starts.
    assert left_on(cloud, target) in ([], ["discard_copies"])
    cleaned(cloud, target)
    assert cloud.reality(server)["transfers"] == []


def test_a_copy_of_a_dead_hosts_disk_stays_until_its_server_is_deleted(
    cloud: Cloud, dead: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The source dies when it has sent its disk, and before it knows."""
    server, disk = cloud.boot(flavor=FLAVORS["cross"][0]), tmp_path / "disk"
    disk.write_bytes(b"all of it")
    make_images = images.make_images
    cloud.without_rounds()

    def make_complete_images(run: Any) -> None:
        make_images(run)
        run.services.images.upload(run.context, run.memory.image_id, disk, disk.stat().st_size)

    monkeypatch.setattr(hand_over, "make_images", make_complete_images)
    dies_when(cloud, dead, HAND_OVER, Verdict.LOSE_REQUEST, fenced=True)
    cloud.member.compute.resize_server(server.id, FLAVORS["cross"][1])
    until(lambda: cloud.show(server).status, lambda status: status == "ERROR", "the server to be in ERROR")
    cloud.settle()
    assert len(cloud.temporary_images()) == 1
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.member.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert cloud.temporary_images() == []


@REACHES
def test_a_cancelled_move_whose_source_died_says_why_its_server_is_in_error(
    cloud: Cloud, dead: Callable[..., None], reach: str
) -> None:
    server = cloud.boot(flavor=FLAVORS[reach][0])
    source = cloud.show(server).compute_host
    for name in ("rpc_response_timeout", "long_rpc_timeout"):
        cloud.option(name, 3)
    with cloud.held(HAND_OVER) as begun:
        cloud.member.compute.resize_server(server.id, FLAVORS[reach][1])
        assert begun.wait(10)
        path = f"/servers/{server.id}/migrations/{cloud.migration(server).id}"
        assert cloud.admin.compute.delete(path, microversion="2.80").status_code == 202
        dead(source)
    until(lambda: cloud.show(server).status, lambda status: status == "ERROR", "the server to be in ERROR")
    cloud.settle()
    assert cloud.migration(server).status == "cancelled"
    assert cloud.show(server).fault["message"] == IS_DEAD


@REACHES
@pytest.mark.parametrize("then", ["comes back", "is deleted"])
def test_a_move_whose_source_dies_before_the_target_has_anything_destroys_nothing(
    cloud: Cloud, dead: Callable[..., None], reach: str, then: str
) -> None:
    server = cloud.boot(flavor=FLAVORS[reach][0])
    source = cloud.show(server).compute_host
    cloud.driver(source).guest_write(server.id, "precious")
    dies_when(cloud, dead, HAND_OVER, Verdict.LOSE_REQUEST, fenced=True)
    cloud.member.compute.resize_server(server.id, FLAVORS[reach][1])
    until(lambda: cloud.show(server).status, lambda status: status == "ERROR", "the server to be in ERROR")
    cloud.settle()
    assert cloud.migration(server).status == "error"
    assert cloud.show(server).compute_host == source
    assert left_on(cloud, source) == ["restore_disks", "discard_copies"]
    assert cloud.temporary_images() == []
    if then == "is deleted":
        cloud.member.compute.delete_server(server.id)
        until(lambda: cloud.member.compute.find_server(server.id), lambda found: found is None, "the server to go")
        come_back(cloud, source)
        assert cloud.hosts_of(server) == {}
        return
    come_back(cloud, source)
    assert left_on(cloud, source) == []
    cloud.member.compute.reboot_server(server.id, "HARD")
    found = until(lambda: cloud.show(server), lambda found: found.status == "ACTIVE", "the server to run again")
    assert found.compute_host == source
    assert "precious" in cloud.driver(source).guest_read(server.id)


def test_auto_confirm_waits_while_a_host_is_down(
    cloud: Cloud, dead: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    server, source, target = moved(cloud, "cross")
    conductor = cloud.embedded.conductor
    look = AutoConfirm()
    cloud.option("resize_confirm_window", 1)
    for host in (source, target):
        dead(host, fenced=False)
        for _look in range(3):
            look(conductor._services, conductor._conductor)
        come_back(cloud, host)
    assert sum("waits for its automatic confirm" in record.message for record in caplog.records) <= 2
    assert cloud.show(server).status == "VERIFY_RESIZE"
    assert "confirmResize" not in cloud.actions(server)

    def status_after_a_look() -> str:
        look(conductor._services, conductor._conductor)
        return str(cloud.show(server).status)

    until(
        status_after_a_look,
        # It was off when its host came back.
        lambda status: status == "SHUTOFF",
        "the confirm",
    )


def impatient(cloud: Cloud) -> None:
    """What can't continue is soon tried again, and calls that nobody answers end soon."""
    cloud.option("stuck_retry_interval", 0.2, "moves")
    cloud.option("first_pause", 0.05, "moves")
    cloud.option("rpc_response_timeout", 2)


def stuck(cloud: Cloud, server: Any) -> None:
    moves = lambda: cloud.moves(server)  # noqa: E731
    until(moves, lambda found: found[-1].state is SagaState.STUCK, "the move to be stuck")


@pytest.mark.expects_errors("is stuck in do of ReleaseSource")
def test_a_confirm_that_has_destroyed_the_sources_disks_continues_without_its_target(
    cloud: Cloud, dead: Callable[..., None]
) -> None:
    """There is nothing left to be careful with."""
    server, source, target = moved(cloud, "cross")
    impatient(cloud)
    cloud.fail("status", "/bindings/", service="network", method="DELETE", status=400)
    cloud.member.compute.confirm_server_resize(server.id)
    stuck(cloud, server)
    assert source not in cloud.hosts_of(server)
    dead(target)
    cloud.parts.devcloud.faults.clear()
    cloud.settle()
    assert cloud.migration(server).status == "confirmed"


@pytest.mark.expects_errors("is stuck in do of DestroyAtTarget")
def test_a_revert_that_has_destroyed_the_targets_guest_continues_without_its_source(
    cloud: Cloud, dead: Callable[..., None]
) -> None:
    """The same the other way round: it becomes a server of a dead host."""
    server, source, target = moved(cloud, "cross")
    volume = cloud.volume()
    cloud.attach(server, volume)
    impatient(cloud)
    cloud.fail("status", "/attachments/", service="volume", method="DELETE", status=400)
    cloud.member.compute.revert_server_resize(server.id)
    stuck(cloud, server)
    assert target not in cloud.hosts_of(server)
    dead(source)
    cloud.parts.devcloud.faults.clear()
    cloud.settle()
    assert cloud.migration(server).status == "reverted"
    found = cloud.show(server)
    assert (found.status, found.compute_host) == ("ERROR", source)
    assert found.fault["message"] == IS_DEAD
