"""The disk of a server that is shelved is uploaded while its guest runs; it is off for what changed meanwhile only."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest

from causeway.compute.guests import running_disk
from causeway.devcloud.image import files
from causeway.errors import GuestFailed
from causeway.model.states import PowerState
from causeway.rpc.transport import Verdict
from causeway.store.api import journal
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.dying_threads import SOON_NOTICED
from tests.functional.servers.failures.test_failed_operations import act, images_of, newest
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.warm.test_warm_moves import boots

CLOUD = SOON_NOTICED
KIND = AuditedCloud
pytestmark = [
    pytest.mark.embedded("looks into hosts, and breaks them"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


@pytest.fixture
def server(cloud: Cloud) -> Any:
    server = cloud.boot("shelved")
    driver(cloud, server).guest_write(server.id, "before")
    return server


def driver(cloud: Cloud, server: Any) -> Any:
    return cloud.driver(cloud.show(server).compute_host)


def meanwhile(cloud: Cloud, server: Any, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Does something once when the disk as it was at the beginning is being uploaded."""
    host, left = driver(cloud, server), [act]
    works = host.open_round

    @contextmanager
    def opened(*args: Any) -> Any:
        with works(*args) as reader:
            yield reader
            if left:
                left.pop()()

    monkeypatch.setattr(host, "open_round", opened)


def without_cold_copy(cloud: Cloud) -> None:
    """Who copies the disk while its guest is off fails."""
    cloud.break_driver(list(cloud.parts.computes), "export_disk")


def shelved(cloud: Cloud, server: Any) -> None:
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()


def unshelved(cloud: AuditedCloud, server: Any) -> list[str]:
    """What its disk has then."""
    cloud.heal()
    act(cloud, server, "unshelve")
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.audit().is_clean
    return [line for line in driver(cloud, server).guest_read(server.id) if not line.startswith("boot=")]


def rounds_of(cloud: Cloud, server: Any) -> list[str]:
    """What is left of the copying on any host."""
    return [
        str(path) for name in cloud.parts.computes for path in cloud.parts.state.host(name).rglob(f"rounds/{server.id}")
    ]


def test_what_the_guest_writes_meanwhile_is_in_the_image(
    cloud: AuditedCloud, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_cold_copy(cloud)
    host, seen = driver(cloud, server), []

    def write() -> None:
        seen.append(host.inspect(server.id).power_state)
        host.guest_write(server.id, "meanwhile " * 20_000)

    meanwhile(cloud, server, monkeypatch, write)
    shelved(cloud, server)
    assert seen == [PowerState.RUNNING]
    (image,) = images_of(cloud, server)
    done = newest(cloud, server)
    assert done.state == "done"
    (stored,) = (step for step in journal.steps(cloud.parts.api_database, done.id) if step.step == "StoreDisk")
    assert stored.bytes_done == cloud.admin.image.get_image(image).size
    assert rounds_of(cloud, server) == []
    assert unshelved(cloud, server) == ["before", "meanwhile " * 20_000]


def test_the_image_service_hears_something_while_the_guest_shuts_down(
    cloud: AuditedCloud, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_cold_copy(cloud)
    monkeypatch.setattr(running_disk, "_SECONDS_BETWEEN_BITS", 0.0)
    monkeypatch.setattr(running_disk, "_BIT", 1 << 10)
    host, sent = driver(cloud, server), []
    works, counts = host.power_off, running_disk._Stream._counted

    def counted(stream: Any, parts: Any, image: Any) -> Any:
        for part in counts(stream, parts, image):
            sent.append(len(part))
            yield part

    def slow(*args: Any) -> None:
        before = len(sent)
        until(lambda: len(sent), lambda now: now > before + 10, "bits to be sent")
        works(*args)

    monkeypatch.setattr(running_disk._Stream, "_counted", counted)
    monkeypatch.setattr(host, "power_off", slow)
    shelved(cloud, server)
    assert unshelved(cloud, server) == ["before"]


@pytest.mark.parametrize("broken", ["begin_round", "open_round", "open_changes"])
def test_what_can_not_be_done_beside_the_guest_is_done_when_it_is_off(
    cloud: AuditedCloud, server: Any, broken: str
) -> None:
    cloud.break_driver(list(cloud.parts.computes), broken)
    shelved(cloud, server)
    assert rounds_of(cloud, server) == []
    assert unshelved(cloud, server) == ["before"]


@pytest.mark.parametrize("is_unknown", [False, True])
def test_what_a_guest_wrote_before_it_went_off_is_in_the_image(
    cloud: AuditedCloud, server: Any, monkeypatch: pytest.MonkeyPatch, is_unknown: bool
) -> None:
    """Perhaps its hypervisor was killed, and it is not known what changed."""
    host = driver(cloud, server)

    def off() -> None:
        host.guest_write(server.id, "meanwhile")
        host.power_off(server.id, 0)
        if is_unknown:
            host.end_rounds(server.id)
            raise GuestFailed("The hypervisor was killed.")

    meanwhile(cloud, server, monkeypatch, off)
    shelved(cloud, server)
    assert unshelved(cloud, server) == ["before", "meanwhile"]


def test_a_guest_whose_shelving_is_cancelled_notices_nothing(
    cloud: AuditedCloud, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causeway.compute.host.transfer_progress.REPORT_INTERVAL", 0.0)
    before, booted = cloud.reality(server), boots(cloud, server)

    def cancel() -> None:
        answer = cloud.admin.compute.delete(f"/os-causeway/operations/{newest(cloud, server).id}")
        assert answer.status_code < 300, answer.text

    meanwhile(cloud, server, monkeypatch, cancel)
    act(cloud, server, "shelve")
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert newest(cloud, server).state == "failed"
    assert boots(cloud, server) == booted
    assert cloud.reality(server) == before
    assert images_of(cloud, server) == []
    assert rounds_of(cloud, server) == []


def test_an_upload_that_breaks_is_repeated(cloud: AuditedCloud, server: Any) -> None:
    cloud.fail("drop", "/file$", service="image", method="PUT", after_bytes=50, times=1)
    shelved(cloud, server)
    assert unshelved(cloud, server) == ["before"]


@pytest.mark.parametrize("verdict", [Verdict.LOSE_REQUEST, Verdict.LOSE_REPLY])
def test_an_order_or_answer_that_is_lost(cloud: AuditedCloud, server: Any, verdict: Verdict) -> None:
    cloud.lose("upload_disk", verdict)
    shelved(cloud, server)
    assert unshelved(cloud, server) == ["before"]


@pytest.mark.parametrize("point", ["disk.stream.in", "disk.stream.off", "compute.upload_disk.after"])
def test_a_shelve_ends_whole_though_its_host_dies(cloud: AuditedCloud, server: Any, dies_at: Any, point: str) -> None:
    dies_at(point)
    shelved(cloud, server)
    assert rounds_of(cloud, server) == []
    assert unshelved(cloud, server) == ["before"]


def test_a_host_that_dies_behind_its_upload_keeps_nothing_of_it(cloud: AuditedCloud, server: Any, dies_at: Any) -> None:
    """The image is complete, so nobody has the host upload again. The server stays on the host."""
    cloud.option("shelved_offload_time", -1)
    dies_at("disk.stream.sent")
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED")
    cloud.settle()
    assert rounds_of(cloud, server) == []
    assert cloud.audit().is_clean


def test_what_an_upload_left_on_a_host_is_deleted_with_the_guest(
    cloud: AuditedCloud, server: Any, dies_at: Any
) -> None:
    dies_at("disk.stream.sent")
    cloud.lose("end_rounds", Verdict.LOSE_REQUEST)
    shelved(cloud, server)
    assert rounds_of(cloud, server) == []
    assert unshelved(cloud, server) == ["before"]


@pytest.mark.parametrize("whole", [True, False])
def test_the_audit_finds_what_an_upload_left(cloud: AuditedCloud, server: Any, whole: bool) -> None:
    """It is deleted only where the host shows the server's own disks."""
    host = cloud.show(server).compute_host
    cloud.driver(host).begin_round(cloud.record(server, "cell1"), ["disk"], 1, since=None, flatten=True)
    assert rounds_of(cloud, server) != []
    if whole:
        cloud.fixes("file.orphaned")
        assert rounds_of(cloud, server) == []
        return
    disks = cloud.parts.state.host(host) / "instances" / server.id
    lost = disks.rename(disks.parent.parent / "lost")
    report = cloud.audit(fix=True)
    (left,) = (each for each in report.disagreements if each.kind == "file.orphaned")
    assert "only copy" in left.left and report.fixed == []
    assert rounds_of(cloud, server) != []
    lost.rename(disks)
    cloud.fixes("file.orphaned")


def test_a_part_of_the_disk_is_never_taken_for_all_of_it(
    cloud: AuditedCloud, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image service has the image in use though its upload was broken off."""
    cloud.without_patience()
    before = cloud.reality(server)

    def receive(stream: Any, path: Any, _expected: Any) -> tuple[int, str, str]:
        path.write_bytes(stream.read(100))
        return 100, "0" * 32, "0" * 128

    monkeypatch.setattr(files, "_receive", receive)
    cloud.break_driver([cloud.show(server).compute_host], "open_changes")
    act(cloud, server, "shelve")
    until(lambda: newest(cloud, server).state, lambda state: state == "failed", "the shelving to fail")
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert "accepted a part of the server's disk" in cloud.faults(server)[-1].message
    assert cloud.reality(server) == before
    assert images_of(cloud, server) == []


def test_an_image_service_that_does_not_end_an_upload_that_was_broken_off(
    cloud: AuditedCloud, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.without_patience()
    before = cloud.reality(server)
    monkeypatch.setattr(running_disk, "_NOTICED_SECONDS", 0.0)
    monkeypatch.setattr(files, "_set_queued", lambda *_: None)
    cloud.break_driver([cloud.show(server).compute_host], "open_changes")
    act(cloud, server, "shelve")
    until(lambda: newest(cloud, server).state, lambda state: state == "failed", "the shelving to fail")
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.reality(server) == before
    assert images_of(cloud, server) == []
    assert rounds_of(cloud, server) == []


def test_an_operator_may_have_guests_off_first(cloud: AuditedCloud, server: Any) -> None:
    cloud.option("warm", "never", "moves")
    cloud.break_driver(list(cloud.parts.computes), "begin_round")
    shelved(cloud, server)
    assert unshelved(cloud, server) == ["before"]


def test_a_paused_server_is_shelved_without_rounds(cloud: AuditedCloud, server: Any) -> None:
    cloud.admin.compute.pause_server(server)
    cloud.wait(server, "PAUSED")
    cloud.break_driver(list(cloud.parts.computes), "begin_round")
    shelved(cloud, server)
    assert unshelved(cloud, server) == ["before"]
