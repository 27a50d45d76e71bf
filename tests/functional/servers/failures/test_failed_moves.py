"""A move that fails restores the server, wherever it fails: same host, running, and nothing left of the attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.devcloud.image import files
from causeway.errors import ClaimRefused
from causeway.rpc.transport import Verdict
from causeway.store.api import journal
from tests.functional.servers.moves_cloud import Cloud

CELL2 = ("cell2-host1", "cell2-host2")
PREP_DEST = "compute_prep_snapshot_based_resize_at_dest"
PREP_SOURCE = "compute_prep_snapshot_based_resize_at_source"
FINISH_DEST = "compute_finish_snapshot_based_resize_at_dest"
CONDUCTOR = "conductor_migrate_server"

Break = Callable[[Cloud, Any], None]


def service(action: str, path: str, **fields: Any) -> Break:
    """A service around us does something else than it was asked."""
    return lambda cloud, _server: cloud.fail(action, path, **fields)


def as_image(action: str, path: str, **fields: Any) -> Break:
    """`service`, of the image service, through which the disk goes when its guest is off."""

    def breaks(cloud: Cloud, _server: Any) -> None:
        cloud.without_rounds()
        cloud.fail(action, path, service="image", **fields)

    return breaks


def cut(path: str, action: str = "status", **fields: Any) -> Break:
    """The hosts do not reach one another any more when the guest is off, and the image service fails, too."""

    def breaks(cloud: Cloud, _server: Any) -> None:
        cloud.cut_offers()
        cloud.fail(action, path, service="image", **fields)

    return breaks


def cut_and_lost(verdict: Verdict) -> Break:
    def breaks(cloud: Cloud, _server: Any) -> None:
        cloud.cut_offers()
        cloud.lose("send_offered", verdict, 2)

    return breaks


def source(method: str, times: int = 1) -> Break:
    """The hypervisor of the source fails."""
    return lambda cloud, server: cloud.break_driver([cloud.show(server).compute_host], method, times)


def target(method: str, times: int = 1000) -> Break:
    """The hypervisors of the target cell fail."""
    return lambda cloud, _server: cloud.break_driver(list(CELL2), method, times)


def lost(method: str, verdict: Verdict, times: int = 1) -> Break:
    """Our own message queue loses a request, or an answer."""
    return lambda cloud, _server: cloud.lose(method, verdict, times)


FAILURES: dict[str, tuple[Break, str]] = {
    "a binding is refused": (service("status", "/bindings$", service="network", method="POST", status=403), PREP_DEST),
    "an attachment is refused": (
        service("status", "/attachments$", service="volume", method="POST", status=400, times=1),
        PREP_DEST,
    ),
    "the target can't connect a volume": (target("check_volume_connectable"), PREP_DEST),
    "the target does not answer": (lost(PREP_DEST.removeprefix("compute_"), Verdict.LOSE_REQUEST, 9), PREP_DEST),
    "the target's first answer is lost for ever": (
        lost(PREP_DEST.removeprefix("compute_"), Verdict.LOSE_REPLY, 9),
        PREP_DEST,
    ),
    "an image is refused": (as_image("status", "/images$", method="POST", status=403), CONDUCTOR),
    "the guest can't be powered off": (source("power_off"), PREP_SOURCE),
    "the disk can't be exported": (source("open_changes"), PREP_SOURCE),
    "the upload is refused": (as_image("status", "/file$", method="PUT", status=413), PREP_SOURCE),
    "the upload dies in the middle": (as_image("drop", "/file$", method="PUT", after_bytes=50), PREP_SOURCE),
    "the guest can't be removed": (source("destroy"), PREP_SOURCE),
    "the disks can't be put aside": (source("stash_disks"), PREP_SOURCE),
    "the source's answer is lost": (lost(PREP_SOURCE.removeprefix("compute_"), Verdict.LOSE_REPLY), PREP_SOURCE),
    "the source's volume is not reserved anew": (
        # The first request reserves it for the target.
        lambda cloud, _server: fail_second_attachment(cloud),
        CONDUCTOR,
    ),
    "the source's volume is not released": (
        service("status", "/attachments/", service="volume", method="DELETE", status=400, times=1),
        CONDUCTOR,
    ),
    "the target does not get its order": (
        lost(FINISH_DEST.removeprefix("compute_"), Verdict.LOSE_REQUEST),
        FINISH_DEST,
    ),
    "the binding can't be activated": (
        service("status", "/bindings/cell2-host./activate", service="network", method="PUT", status=403),
        FINISH_DEST,
    ),
    "the download breaks off": (as_image("drop", "/file$", method="GET", after_bytes=50), FINISH_DEST),
    "the download is damaged": (as_image("corrupt", "/file$", method="GET"), FINISH_DEST),
    "what is offered can't be fetched, and an image is refused": (
        cut("/images$", method="POST", status=403),
        FINISH_DEST,
    ),
    "what is offered can't be fetched, and the upload is refused": (
        cut("/file$", method="PUT", status=413),
        FINISH_DEST,
    ),
    "the target's attachment gets no connector": (
        service("status", "/attachments/", service="volume", method="PUT", status=400, times=1),
        FINISH_DEST,
    ),
    "the guest can't be made": (target("spawn"), FINISH_DEST),
    "the guest breaks in the middle of its making": (target("_boot"), FINISH_DEST),
    "the volume can't be completed": (
        service("status", "/attachments/.*/action", service="volume", method="POST", status=400, times=1),
        FINISH_DEST,
    ),
    "the target's answer is lost": (lost(FINISH_DEST.removeprefix("compute_"), Verdict.LOSE_REPLY), FINISH_DEST),
}


def fail_second_attachment(cloud: Cloud) -> None:
    cloud.fail("delay", "/attachments$", service="volume", method="POST", times=1)
    cloud.fail("status", "/attachments$", service="volume", method="POST", status=400, times=1)


# What passes when it has happened so often.
PASSING: dict[str, Break] = {
    "the scheduler's answer is lost": lost("select_destinations", Verdict.LOSE_REPLY, 2),
    "the target's first answers are lost": lost(PREP_DEST.removeprefix("compute_"), Verdict.LOSE_REPLY, 3),
    "no attachment can be made": service(
        "status", "/attachments$", service="volume", method="POST", status=503, times=2
    ),
    "the guest can't be powered off": source("power_off"),
    "the disk can't be exported": source("open_changes"),
    "the upload dies in the middle": as_image("drop", "/file$", method="PUT", after_bytes=50, times=1),
    "what is offered can't be fetched": lambda cloud, _server: cloud.cut_offers(),
    "what is offered can't be fetched, and its upload dies in the middle": cut(
        "/file$", "drop", method="PUT", after_bytes=50, times=1
    ),
    "the order to send what was offered is lost": cut_and_lost(Verdict.LOSE_REQUEST),
    "its answer is lost": cut_and_lost(Verdict.LOSE_REPLY),
    "the guest can't be removed": source("destroy"),
    "the disks can't be put aside": source("stash_disks"),
    "the source does not get its order": lost(PREP_SOURCE.removeprefix("compute_"), Verdict.LOSE_REQUEST, 2),
    "the source's answer is lost": lost(PREP_SOURCE.removeprefix("compute_"), Verdict.LOSE_REPLY, 2),
    "the target does not get its order": lost(FINISH_DEST.removeprefix("compute_"), Verdict.LOSE_REQUEST, 2),
    "the target's answer is lost": lost(FINISH_DEST.removeprefix("compute_"), Verdict.LOSE_REPLY, 2),
    "the binding can't be activated": service(
        "status", "/bindings/cell2-host./activate", service="network", method="PUT", status=503, times=6
    ),
    "the download breaks off": as_image("drop", "/file$", method="GET", after_bytes=50, times=2),
    "the download is damaged": as_image("corrupt", "/file$", method="GET", times=1),
    "the guest can't be made": target("spawn", 2),
    "the guest breaks in the middle of its making": target("_boot", 2),
}


@pytest.fixture(scope="module", autouse=True)
def one_server(module_cloud: Cloud) -> Any:
    """A server with a port and a volume; each test finds it as the first one did, or the test before it is to blame."""
    server = module_cloud.boot(name="survivor")
    module_cloud.attach(server, module_cloud.volume())
    module_cloud.driver(module_cloud.show(server).compute_host).guest_write(server.id, "precious")
    return server


@pytest.fixture
def cloud(module_cloud: Cloud) -> Any:
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()


@pytest.mark.parametrize("failure", FAILURES)
def test_the_server_is_restored(cloud: Cloud, one_server: Any, failure: str) -> None:
    cloud.without_patience()
    breaks, event = FAILURES[failure]
    before = cloud.reality(one_server)
    breaks(cloud, one_server)
    cloud.member.compute.resize_server(one_server.id, "gen2.small")
    after = cloud.failed(one_server)

    assert cloud.reality(one_server) == before
    assert "precious" in cloud.driver(after.compute_host).guest_read(one_server.id)
    assert cloud.allocations(cloud.migration(one_server).uuid) == {}
    action = cloud.action(one_server, "resize")
    assert action.message not in (None, "Error") and "-host" not in action.message
    assert (event, "Error") in cloud.events(one_server, "resize")
    failed = next(each for each in action.events if each["event"] == event)
    assert failed["details"] == cloud.faults(one_server)[-1].message
    record = cloud.record(one_server, "cell1")
    assert (record.migration_context, record.old_flavor, record.new_flavor, record.old_vm_state) == (None,) * 4


@pytest.mark.parametrize("failure", PASSING)
def test_what_passes_is_waited_for(cloud: Cloud, one_server: Any, failure: str) -> None:
    PASSING[failure](cloud, one_server)
    after = cloud.resized(one_server)
    cloud.settle()
    assert after.compute_host.startswith("cell2")
    assert "precious" in cloud.driver(after.compute_host).guest_read(one_server.id)
    moves = journal.of_migration(cloud.parts.api_database, cloud.migration(one_server).uuid)
    assert [(move.state, move.error) for move in moves] == [("done", None)]
    assert cloud.reality(one_server)["runs on"] == [after.compute_host]
    assert list(cloud.allocations(one_server.id)) == [after.compute_host]
    # One for the target and one for the source: no lost answer left another.
    assert len(cloud.attachments(one_server)) == 2
    assert cloud.temporary_images() == []
    cloud.reverted(one_server)
    assert "precious" in cloud.driver(cloud.show(one_server).compute_host).guest_read(one_server.id)
    assert len(cloud.attachments(one_server)) == 1


@pytest.mark.parametrize("cut_off", [False, True])
def test_an_image_whose_upload_its_service_did_not_survive_is_made_anew(
    cloud: Cloud, one_server: Any, cut_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays "saving" for good, and takes no data any more."""
    monkeypatch.setattr(files, "_set_queued", lambda *_: None)
    if cut_off:
        cloud.cut_offers()
    else:
        cloud.without_rounds()
    cloud.fail("drop", "/file$", service="image", method="PUT", after_bytes=50, times=1)
    after = cloud.resized(one_server)
    cloud.settle()
    assert "precious" in cloud.driver(after.compute_host).guest_read(one_server.id)
    moves = journal.of_migration(cloud.parts.api_database, cloud.migration(one_server).uuid)
    assert [(move.state, move.error) for move in moves] == [("done", None)]
    assert cloud.temporary_images() == []
    cloud.reverted(one_server)


def test_a_flavor_that_no_host_has_room_for_changes_nothing(cloud: Cloud, one_server: Any) -> None:
    before = cloud.reality(one_server)
    huge = cloud.admin.compute.create_flavor(name="huge", ram=256, vcpus=1, disk=100000)
    cloud.member.compute.resize_server(one_server.id, huge.id)
    cloud.failed(one_server)
    assert cloud.reality(one_server) == before
    assert cloud.events(one_server, "resize")[-1][1] == "Error"
    assert "No valid host was found" in cloud.faults(one_server)[-1].message
    cloud.admin.compute.delete_flavor(huge)


@pytest.mark.parametrize(
    "failure", ["the guest can't be powered off", "the upload is refused", "the guest can't be made"]
)
def test_a_stopped_server_is_restored_stopped(cloud: Cloud, failure: str) -> None:
    cloud.without_patience()
    server = cloud.boot()
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    before = cloud.reality(server)
    FAILURES[failure][0](cloud, server)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    if failure == "the guest can't be powered off":
        cloud.wait(server, "VERIFY_RESIZE")
        return
    cloud.failed(server, "SHUTOFF")
    assert {**cloud.reality(server), "ports": {}} == {**before, "ports": {}}


def test_the_next_alternate_is_taken_if_the_first_target_refuses(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()
    cloud.attach(server, cloud.volume())
    refused: list[str] = []
    for host in CELL2:

        def refuse(_info: Any, host: str = host) -> None:
            if not refused:
                refused.append(host)
                raise ClaimRefused("This host has no more room.")

        monkeypatch.setattr(cloud.driver(host), "check_volume_connectable", refuse)
    after = cloud.resized(server)

    (other,) = set(CELL2) - set(refused)
    assert after.compute_host == other
    events = [each for each in cloud.events(server, "resize") if each[0] == PREP_DEST]
    assert events == [(PREP_DEST, "Error"), (PREP_DEST, "Success")]
    assert list(cloud.allocations(server.id)) == [other]
    (bindings,) = [port[2] for port in cloud.ports(server).values()]
    assert set(bindings) == {"cell1-host1", other} or set(bindings) == {"cell1-host2", other}
    assert cloud.migration(server).dest_compute == other
    assert len(cloud.attachments(server)) == 2
    cloud.confirmed(server)
    assert cloud.cleanups(server, "cell1") == []
