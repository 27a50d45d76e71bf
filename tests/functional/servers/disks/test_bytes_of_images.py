"""How far uploads and downloads of images have come, as the operations of a server show it while they run and afterwards."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from causeway.clients import image
from causeway.compute.guests import build
from causeway.compute.host import transfer_progress
from causeway.rpc import cell_conductor
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import journal
from causeway.store.cell import instances
from tests.functional.servers.moves_cloud import PATIENCE, Cloud, another_conductor, until
from tests.lease_checks import end_lease

pytestmark = pytest.mark.embedded("holds up reports of computes")

CHUNK = 64
ACTIONS: dict[str, Any] = {
    "createImage": {"name": "copy"},
    "createBackup": {"name": "copy", "backup_type": "daily", "rotation": 1},
    "shelve": None,
}


class Reports:
    """A transfer reports after every chunk, and waits before its second report until `let_continue`."""

    def __init__(self, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reported: list[int] = []
        self.verdict = Verdict.DELIVER
        self.held, self._opened = threading.Event(), threading.Event()
        self.let_continue = self._opened.set
        monkeypatch.setattr(transfer_progress, "REPORT_INTERVAL", 0.0)
        monkeypatch.setattr(image, "UPLOAD_CHUNK_BYTES", CHUNK)
        monkeypatch.setattr(image, "DOWNLOAD_CHUNK_BYTES", CHUNK)
        cloud.parts.around.transports.on_send = self._on_send

    def _on_send(self, message: Outgoing) -> Verdict:
        if message.method == "report_progress" and message.topic == cell_conductor.TOPIC:
            if self.reported and not self._opened.is_set():
                self.held.set()
                assert self._opened.wait(30)
            self.reported.append(message.arguments["bytes_done"])
            return self.verdict
        return Verdict.DELIVER


@pytest.fixture
def reports(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Reports:
    return Reports(cloud, monkeypatch)


@pytest.fixture
def server(cloud: Cloud) -> Any:
    """Its disk is several chunks long; it goes up as a file does, also if the server is shelved."""
    cloud.without_rounds()
    found = cloud.boot()
    cloud.driver(found.compute_host).guest_write(found.id, "x" * 5 * CHUNK)
    return found


def act(cloud: Cloud, server: Any, action: str, value: Any = None) -> Any:
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json={action: value}, microversion="2.96")
    assert answer.status_code == 202, answer.text
    return answer


def newest(cloud: Cloud, server: Any) -> dict[str, Any]:
    answer = cloud.admin.compute.get(f"/os-causeway/servers/{server.id}/operations", params={"all": "1", "limit": "1"})
    found: dict[str, Any] = answer.json()["operations"][0]
    return found


def bytes_of(shown: dict[str, Any]) -> tuple[Any, Any, Any]:
    return shown["bytes_done"], shown["bytes_total"], shown["percent"]


def step_of(shown: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (step for step in shown["steps"] if step["step"] == name)
    return found


def image_of(cloud: Cloud, server: Any) -> Any:
    (found,) = cloud.admin.image.images(instance_uuid=server.id)
    return found


def check(cloud: Cloud, server: Any, reports: Reports, step: str) -> int:
    """Of the transfer that is held up, and of its end; returns how many bytes it had."""
    assert reports.held.wait(30)
    # What comes less than half a second after another transfer's report is written down together with what follows.
    shown = until(lambda: newest(cloud, server), lambda found: found["bytes_total"] is not None, "the report")
    size: int = shown["bytes_total"]
    assert size > 2 * CHUNK
    assert (shown["step"], bytes_of(shown)) == (step, (CHUNK, size, 100 * CHUNK // size))
    assert bytes_of(step_of(shown, step)) == bytes_of(shown)
    reports.let_continue()
    cloud.settle()
    ended = newest(cloud, server)
    assert (ended["state"], bytes_of(ended)) == ("done", (None, None, None))
    assert bytes_of(step_of(ended, step)) == (size, size, 100)
    assert reports.reported == [*range(CHUNK, size, CHUNK), size]
    return size


def shelved(cloud: Cloud, server: Any) -> Any:
    """Shelves a server; its image."""
    act(cloud, server, "shelve")
    cloud.wait(server, "SHELVED_OFFLOADED")
    return image_of(cloud, server)


def new_image(cloud: Cloud) -> Any:
    """An image that no host has yet."""
    return cloud.admin.image.create_image(
        name="new", disk_format="raw", container_format="bare", visibility="public", data=b"n" * 5 * CHUNK
    )


@pytest.mark.parametrize("action", ACTIONS)
def test_an_upload_shows_its_bytes(cloud: Cloud, server: Any, reports: Reports, action: str) -> None:
    act(cloud, server, action, ACTIONS[action])
    size = check(cloud, server, reports, "StoreDisk" if action == "shelve" else "UploadDisk")
    found = image_of(cloud, server)
    assert (found.status, found.size) == ("active", size)


def test_the_download_of_an_unshelve_shows_its_bytes(
    cloud: Cloud, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = shelved(cloud, server).size
    reports = Reports(cloud, monkeypatch)
    act(cloud, server, "unshelve")
    assert check(cloud, server, reports, "StartGuest") == size
    cloud.wait(server, "ACTIVE")


def test_a_rebuild_shows_bytes_only_if_it_downloads_the_image(cloud: Cloud, server: Any, reports: Reports) -> None:
    found = new_image(cloud)
    act(cloud, server, "rebuild", {"imageRef": found.id})
    assert check(cloud, server, reports, "RebuildGuest") == 5 * CHUNK
    act(cloud, server, "rebuild", {"imageRef": found.id})
    cloud.settle()
    assert bytes_of(step_of(newest(cloud, server), "RebuildGuest")) == (None, None, None)


def test_what_is_through_before_a_report_is_due_is_shown_at_its_end(
    cloud: Cloud, server: Any, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer_progress, "REPORT_INTERVAL", 60.0)
    size = shelved(cloud, server).size
    assert bytes_of(step_of(newest(cloud, server), "StoreDisk")) == (size, size, 100)
    act(cloud, server, "unshelve")
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert bytes_of(step_of(newest(cloud, server), "StartGuest")) == (size, size, 100)
    assert reports.reported == []


@pytest.mark.parametrize("action", ["createImage", "shelve"])
def test_a_conductor_that_can_not_be_notified_holds_up_no_upload(
    cloud: Cloud, server: Any, reports: Reports, action: str
) -> None:
    reports.verdict = Verdict.LOSE_REQUEST
    act(cloud, server, action, ACTIONS[action])
    cloud.settle()
    shown = newest(cloud, server)
    found = image_of(cloud, server)
    assert (shown["state"], found.status) == ("done", "active")
    assert bytes_of(shown["steps"][0]) == (found.size, found.size, 100)
    # Each would have waited for its answer.
    assert reports.reported == [CHUNK]


@pytest.mark.parametrize("action", ["createImage", "shelve"])
def test_an_upload_under_way_stops_when_it_is_cancelled(
    cloud: Cloud, server: Any, reports: Reports, action: str
) -> None:
    before = cloud.reality(server)
    act(cloud, server, action, ACTIONS[action])
    assert reports.held.wait(30)
    cloud.admin.compute.delete(f"/os-causeway/operations/{newest(cloud, server)['id']}")
    reports.let_continue()
    cloud.settle()
    ended = newest(cloud, server)
    assert (ended["state"], ended["error"]["code"]) == ("failed", "move_cancelled")
    assert (ended["steps"][0]["phase"], ended["steps"][0]["state"]) == ("do", "failed")
    assert reports.reported == [CHUNK, 2 * CHUNK]
    assert list(cloud.admin.image.images(instance_uuid=server.id)) == []
    assert cloud.reality(server) == before


def exports_of(cloud: Cloud, server: Any) -> list[str]:
    """The copies of its disks that its host has for uploads."""
    files = cloud.driver(cloud.show(server).compute_host).files
    return [path.name for path in files.exports_dir.iterdir() if server.id in path.name]


def test_a_guest_is_not_locked_while_its_image_is_uploaded(cloud: Cloud, server: Any, reports: Reports) -> None:
    """What else its host is to do to it does not wait for the image service."""
    host = cloud.parts.computes[cloud.show(server).compute_host].host
    act(cloud, server, "createImage", {"name": "copy"})
    assert reports.held.wait(30)

    def locked() -> bool:
        with host.lock(server.id):
            return not reports.held.is_set()

    with ThreadPoolExecutor(1) as pool:
        try:
            assert pool.submit(locked).result(PATIENCE) is False
        finally:
            reports.let_continue()
    cloud.settle()
    assert image_of(cloud, server).status == "active"
    assert exports_of(cloud, server) == []


def test_an_image_is_whole_even_if_the_guest_is_destroyed_during_its_upload(
    cloud: Cloud, server: Any, reports: Reports
) -> None:
    """By an order that nobody expected: a delete waits for the end of the upload."""
    host = cloud.parts.computes[cloud.show(server).compute_host].host
    act(cloud, server, "createImage", {"name": "copy"})
    assert reports.held.wait(30)
    (export,) = exports_of(cloud, server)
    whole = (host.driver.files.exports_dir / export).read_bytes()
    _cell, database = cloud.parts.cells.of_server(server.id)
    instance = instances.get(database, server.id)
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(build.destroy, host, instance, []).result(PATIENCE)
        finally:
            reports.let_continue()
    assert not host.driver.inspect(server.id).has_disks
    cloud.settle()
    found = image_of(cloud, server)
    assert (found.status, found.size) == ("active", len(whole))
    assert cloud.admin.image.download_image(found).content == whole
    assert exports_of(cloud, server) == []


def test_a_server_that_is_deleted_during_the_upload_leaves_nothing(cloud: Cloud, server: Any, reports: Reports) -> None:
    host = cloud.show(server).compute_host
    act(cloud, server, "createImage", {"name": "copy"})
    assert reports.held.wait(30)
    files = cloud.driver(host).files
    cloud.member.compute.delete_server(server.id)
    reports.let_continue()
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to be gone")
    cloud.settle()
    assert list(cloud.admin.image.images(instance_uuid=server.id)) == []
    assert [path.name for path in files.exports_dir.iterdir() if server.id in path.name] == []
    assert not cloud.driver(host).inspect(server.id).has_disks


def test_whoever_takes_a_shelve_over_joins_its_upload(
    cloud: Cloud, server: Any, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads, upload = [], image.ImageClient.upload

    def counted(*args: Any) -> str:
        uploads.append(args)
        return upload(*args)

    monkeypatch.setattr(image.ImageClient, "upload", counted)
    with another_conductor(cloud) as other:
        act(cloud, server, "shelve")
        assert reports.held.wait(30)
        (operation,) = journal.unfinished(cloud.parts.api_database)
        taker = other if other._services.life.owner != operation.owner else cloud.parts.conductor

        def taken_over() -> bool:
            # The owner renews its lease.
            end_lease(cloud.parts.api_database, journal.get(cloud.parts.api_database, operation.id))
            taker._keeper.take_over()
            return journal.get(cloud.parts.api_database, operation.id).owner != operation.owner

        until(taken_over, bool, "the takeover")
        until(lambda: step_of(newest(cloud, server), "StoreDisk")["attempt"], lambda tries: tries == 2, "its order")
        reports.let_continue()
        cloud.wait(server, "SHELVED_OFFLOADED")
        cloud.settle()
    found = image_of(cloud, server)
    assert bytes_of(step_of(newest(cloud, server), "StoreDisk")) == (found.size, found.size, 100)
    # What is reported under the former owner's orders is refused, and not tried again.
    assert (len(uploads), reports.reported) == (1, [CHUNK, 2 * CHUNK])
