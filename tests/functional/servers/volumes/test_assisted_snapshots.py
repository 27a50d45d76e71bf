"""Block storage keeps a volume in several files, and has the server's hypervisor change from one to another."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from causeway import errors
from causeway.clients import volume_migrations as volumes
from causeway.clients.volume import VolumeClient
from causeway.model.states import TaskState
from causeway.requests import acceptance
from causeway.store import servers
from causeway.store.cell import actions, instances
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.volumes.copies import delete_all, snapshots


@pytest.fixture
def server(cloud: Cloud) -> Any:
    cloud.needs_devcloud("volumes are files that the test makes")
    return cloud.boot()


@pytest.fixture
def volume(cloud: Cloud, server: Any) -> Iterator[Any]:
    volume = cloud.volume()
    cloud.attach(server, volume)
    yield volume
    # Nobody continues them: block storage would keep them, and their volume, for ever.
    for snapshot in snapshots(cloud):
        if snapshot.volume_id == volume.id:
            reset(cloud, snapshot.id, "available")


def wanted_snapshot(cloud: Cloud, volume: Any, status: str = "creating") -> str:
    """One that block storage waits for."""
    body = {"snapshot": {"volume_id": volume.id, "force": True}}
    found = cloud.member.block_storage.post("/snapshots", json=body).json()["snapshot"]["id"]
    until(lambda: shown(cloud, found)["status"], lambda seen: seen == "available", "the snapshot")
    reset(cloud, found, status)
    return str(found)


def reset(cloud: Cloud, snapshot_id: str, status: str) -> None:
    answer = cloud.admin.block_storage.post(
        f"/snapshots/{snapshot_id}/action", json={"os-reset_status": {"status": status}}
    )
    assert answer.ok, answer.text


def shown(cloud: Cloud, snapshot_id: str) -> dict[str, Any]:
    found: dict[str, Any] = cloud.admin.block_storage.get(f"/snapshots/{snapshot_id}").json()["snapshot"]
    return found


def progress(cloud: Cloud, snapshot_id: str) -> tuple[str, str]:
    found = shown(cloud, snapshot_id)
    return found["status"], found["os-extended-snapshot-attributes:progress"]


def file_of(cloud: Cloud, server: Any) -> Path:
    guest = cloud.driver(cloud.show(server).compute_host).files.guests[server.id]
    return Path(guest.volumes[-1].path)


def ask(cloud: Cloud, volume: Any, snapshot_id: str, new_file: str, by: Any = None) -> Any:
    info = {"snapshot_id": snapshot_id, "type": "qcow2", "new_file": new_file, "id": "their-id"}
    body = {"snapshot": {"volume_id": volume.id, "create_info": info}}
    return (by or cloud.admin).compute.post("/os-assisted-volume-snapshots", json=body)


def merge(cloud: Cloud, volume_id: str, snapshot_id: str, **more: Any) -> Any:
    info = quote(json.dumps({"volume_id": volume_id, **more}))
    return cloud.admin.compute.delete(f"/os-assisted-volume-snapshots/{snapshot_id}?delete_info={info}")


def test_a_guest_continues_in_the_new_file(cloud: Cloud, server: Any, volume: Any) -> None:
    driver = cloud.driver(cloud.show(server).compute_host)
    driver.guest_write(server.id, "before the snapshot", "vdb")
    before = file_of(cloud, server)
    new = before.with_name(f"{before.name}.snapshot")
    new.touch()
    snapshot_id = wanted_snapshot(cloud, volume)
    answer = ask(cloud, volume, snapshot_id, new.name)
    assert (answer.status_code, answer.json()) == (200, {"snapshot": {"id": "their-id", "volumeId": volume.id}})
    cloud.wait(server, "ACTIVE")
    assert progress(cloud, snapshot_id) == ("creating", "90%")
    assert file_of(cloud, server) == new
    driver.guest_write(server.id, "after the snapshot", "vdb")

    # It is the file that the guest comes up with.
    cloud.admin.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    assert file_of(cloud, server) == new
    assert {"before the snapshot", "after the snapshot"} <= set(driver.guest_read(server.id, "vdb"))

    reset(cloud, snapshot_id, "deleting")
    assert merge(cloud, volume.id, snapshot_id, file_to_merge=None, merge_target_file=None).status_code == 204
    cloud.wait(server, "ACTIVE")
    assert progress(cloud, snapshot_id) == ("deleting", "90%")
    assert [action.action for action in cloud.admin.compute.server_actions(server.id)].count("volume_snapshot") == 2


@contextmanager
def nearly_ended(cloud: Cloud, server: Any, volume: Any) -> Iterator[tuple[str, threading.Event]]:
    """A snapshot of which block storage knows that it is done, while the server still has its task; until the event is set."""
    begun, may_end = threading.Event(), threading.Event()
    report = volumes.VolumeMigrations.report_snapshot

    def reported(*arguments: Any) -> None:
        report(*arguments)
        begun.set()
        assert may_end.wait(60)

    file_of(cloud, server).with_name("new").touch()
    snapshot_id = wanted_snapshot(cloud, volume)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(volumes.VolumeMigrations, "report_snapshot", reported)
        assert ask(cloud, volume, snapshot_id, "new").status_code == 200
        assert begun.wait(60)
        try:
            yield snapshot_id, may_end
        finally:
            may_end.set()


def answer_after(call: Callable[[], Any], ended: threading.Event) -> Any:
    """What ``call`` returns; it must not, before ``ended`` is set."""
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(call)
        try:
            with pytest.raises(TimeoutError):
                asked.result(1)
        finally:
            ended.set()
        return asked.result(60)


@pytest.mark.embedded("holds a report of a compute")
def test_the_next_snapshot_waits_for_the_one_before_it(cloud: Cloud, server: Any, volume: Any) -> None:
    """Block storage asks for it when the hypervisor has done its part, and the server's task is not over yet."""
    with nearly_ended(cloud, server, volume) as (snapshot_id, may_end):
        assert answer_after(lambda: merge(cloud, volume.id, snapshot_id), may_end).status_code == 204
    cloud.wait(server, "ACTIVE")


@pytest.mark.embedded("holds a report of a compute")
def test_a_user_is_not_refused_because_of_a_snapshot(cloud: Cloud, server: Any, volume: Any) -> None:
    """In Nova it gives the server no task: block storage asks for it, and its user knows nothing of it."""
    compute = cloud.member.compute
    with nearly_ended(cloud, server, volume) as (_snapshot_id, may_end):
        paused = answer_after(lambda: compute.post(f"/servers/{server.id}/action", json={"pause": None}), may_end)
        assert paused.status_code == 202, paused.text
    cloud.wait(server, "PAUSED")
    assert compute.post(f"/servers/{server.id}/action", json={"unpause": None}).status_code == 202
    cloud.wait(server, "ACTIVE")


@pytest.mark.embedded("holds a report of a compute")
def test_a_volume_is_detached_when_its_snapshot_has_ended(cloud: Cloud, server: Any, volume: Any) -> None:
    path = f"/servers/{server.id}/os-volume_attachments/{volume.id}"
    with nearly_ended(cloud, server, volume) as (_snapshot_id, may_end):
        assert answer_after(lambda: cloud.member.compute.delete(path), may_end).status_code == 202
    until(lambda: cloud.member.compute.get(path).status_code, lambda status: status == 404, "the volume to go")


def test_what_fails_is_reported(cloud: Cloud, server: Any, volume: Any, monkeypatch: Any) -> None:
    """There is no such file; and a merge that breaks off."""
    before = file_of(cloud, server)
    snapshot_id = wanted_snapshot(cloud, volume)
    assert ask(cloud, volume, snapshot_id, "nothing").status_code == 200
    cloud.wait(server, "ACTIVE")
    assert shown(cloud, snapshot_id)["status"] == "error"
    assert file_of(cloud, server) == before

    def breaks(*_arguments: Any) -> None:
        raise errors.GuestFailed("The merge broke off.")

    monkeypatch.setattr(cloud.driver(cloud.show(server).compute_host), "merge_volume_files", breaks)
    other = wanted_snapshot(cloud, volume, "deleting")
    assert merge(cloud, volume.id, other).status_code == 204
    cloud.wait(server, "ACTIVE")
    assert shown(cloud, other)["status"] == "error_deleting"


def test_assisted_snapshots_that_are_not_allowed_are_refused(cloud: Cloud, server: Any, volume: Any) -> None:
    snapshot_id, free = wanted_snapshot(cloud, volume), cloud.volume()
    assert ask(cloud, volume, snapshot_id, "new", by=cloud.member).status_code == 403
    # The last one has too many bytes in any file system, though not too many characters.
    for name in ("../new", "/etc/passwd", "..", "n" * 300, "ü" * 200):
        assert ask(cloud, volume, snapshot_id, name).status_code == 400
        assert merge(cloud, volume.id, snapshot_id, file_to_merge=name).status_code == 400
    assert ask(cloud, free, snapshot_id, "new").status_code == 400
    nobody = "99999999-2222-3333-4444-555555555555"
    assert merge(cloud, nobody, snapshot_id).status_code == 400
    assert merge(cloud, volume.id, snapshot_id, merge_target_file="one").status_code == 400
    assert merge(cloud, "half of a character: \ud800", snapshot_id).status_code == 400
    cloud.member.compute.suspend_server(server.id)
    cloud.wait(server, "SUSPENDED")
    assert ask(cloud, volume, snapshot_id, "new").status_code == 400
    assert [move for move in cloud.moves(server) if move.recipe == "snapshot_volume"] == []


class StorageOfFiles:
    """Block storage whose volumes are files on one another, in front of devcloud's, which copies whole volumes.

    It asks for an assisted snapshot before a snapshot is available, and for a merge before one is gone.
    """

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._made: dict[str, Any] = {}
        self._create, self._delete = VolumeClient.create_snapshot, VolumeClient.delete_snapshot
        self.asked: list[tuple[str, int]] = []
        # The volume whose new file is missing.
        self.broken = ""

    def create(self, client: VolumeClient, context: Any, volume_id: str, **named: Any) -> str:
        found = self._create(client, context, volume_id, **named)
        until(lambda: shown(self._cloud, found)["status"], lambda seen: seen == "available", "the snapshot")
        reset(self._cloud, found, "creating")
        volume = self._cloud.admin.block_storage.get_volume(volume_id)
        server_id = volume.attachments[0]["server_id"]
        driver = self._cloud.driver(self._cloud.admin.compute.get_server(server_id).compute_host)
        devices = {each.volume_id: each.path for each in driver.files.guests[server_id].volumes}
        if volume_id != self.broken:
            Path(devices[volume_id]).with_name(found).touch()
        self._made[found] = volume
        threading.Thread(target=self._ask, args=(volume, found)).start()
        return found

    def delete(self, client: VolumeClient, context: Any, snapshot_id: str) -> None:
        if snapshot_id in self._made and shown(self._cloud, snapshot_id)["status"] == "available":
            reset(self._cloud, snapshot_id, "deleting")
            answer = merge(self._cloud, self._made[snapshot_id].id, snapshot_id)
            self.asked.append(("merge", answer.status_code))
            until(lambda: progress(self._cloud, snapshot_id), lambda seen: seen == ("deleting", "90%"), "the merge")
            reset(self._cloud, snapshot_id, "available")
        self._delete(client, context, snapshot_id)

    def _ask(self, volume: Any, snapshot_id: str) -> None:
        answer = ask(self._cloud, volume, snapshot_id, snapshot_id)
        self.asked.append(("snapshot", answer.status_code))
        if answer.status_code != 200:
            reset(self._cloud, snapshot_id, "error")
            return
        done = [("creating", "90%")]
        ended = until(
            lambda: progress(self._cloud, snapshot_id),
            lambda seen: seen in done or seen[0] == "error",
            "the hypervisor",
        )
        if ended in done:
            reset(self._cloud, snapshot_id, "available")


@pytest.fixture
def storage(cloud: Cloud) -> Iterator[StorageOfFiles]:
    cloud.needs_devcloud("volumes are files that the test makes")
    found = StorageOfFiles(cloud)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(VolumeClient, "create_snapshot", lambda *given, **named: found.create(*given, **named))
        patched.setattr(VolumeClient, "delete_snapshot", lambda *given: found.delete(*given))
        yield found
    delete_all(cloud, copies)


def copies(cloud: Cloud) -> list[Any]:
    """The snapshots of images, not those that other tests leave."""
    return [each for each in snapshots(cloud) if each.name == "snapshot for copy"]


def image_of_both_volumes(cloud: Cloud, storage: StorageOfFiles, *, is_whole: bool) -> tuple[Any, str]:
    """A server on a volume with another one, and the id of the image that it was asked for."""
    server = cloud.boot_from_volume()
    data = cloud.volume()
    cloud.attach(server, data)
    storage.broken = "" if is_whole else data.id
    body = {"createImage": {"name": "copy"}}
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json=body, microversion="2.96")
    assert answer.status_code == 202, answer.text
    return server, answer.json()["image_id"]


@pytest.mark.embedded("stands in for the volume service in the cloud's process")
def test_an_image_of_a_server_on_a_volume_is_not_in_the_way_of_its_own_snapshots(
    cloud: Cloud, storage: StorageOfFiles
) -> None:
    server, image_id = image_of_both_volumes(cloud, storage, is_whole=True)
    image = until(
        lambda: cloud.admin.image.find_image(image_id), lambda found: found is None or found.status == "active", "it"
    )
    assert image is not None
    assert storage.asked == [("snapshot", 200)] * 2
    shown = cloud.wait(server, "ACTIVE")
    assert shown.task_state is None
    files = [Path(each.path).name for each in cloud.driver(shown.compute_host).files.guests[server.id].volumes]
    named = {each["snapshot_id"] for each in json.loads(image.properties["block_device_mapping"])}
    assert set(files) == named
    # Nothing stands in the way of what its user asks for next.
    cloud.member.compute.pause_server(server.id)
    cloud.wait(server, "PAUSED")


@pytest.mark.embedded("stands in for the volume service in the cloud's process")
def test_snapshots_of_an_image_that_fails_are_merged_and_deleted(cloud: Cloud, storage: StorageOfFiles) -> None:
    server, image_id = image_of_both_volumes(cloud, storage, is_whole=False)
    until(lambda: cloud.admin.image.find_image(image_id), lambda found: found is None, "the image to go")
    assert cloud.wait(server, "ACTIVE").task_state is None
    assert ("merge", 204) in storage.asked
    assert copies(cloud) == []


@pytest.mark.embedded("breaks what the API calls")
def test_an_answer_that_is_lost_does_not_refuse_a_snapshot_of_an_image(
    cloud: Cloud, storage: StorageOfFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has the task of its image: what the request wrote is found all the same."""
    swap, change, asking = acceptance._swap, servers.change, threading.local()

    def swapped(cells: Any, cell_uuid: str, request: Any, **more: Any) -> None:
        asking.recipe = request.operation.recipe
        swap(cells, cell_uuid, request, **more)

    def changed(*given: Any, **more: Any) -> None:
        change(*given, **more)
        if getattr(asking, "recipe", None) == "snapshot_volume":
            raise errors.DatabaseFailed("lost", details="lost")

    monkeypatch.setattr(acceptance, "_swap", swapped)
    monkeypatch.setattr(servers, "change", changed)
    server, image_id = image_of_both_volumes(cloud, storage, is_whole=True)
    until(lambda: cloud.admin.image.find_image(image_id), lambda found: found is None or found.status == "active", "it")
    assert storage.asked == [("snapshot", 200)] * 2
    assert cloud.wait(server, "ACTIVE").task_state is None


@pytest.mark.embedded("breaks what the API calls")
def test_a_snapshot_of_an_image_that_is_not_accepted_says_so_and_the_image_keeps_its_task(
    cloud: Cloud, storage: StorageOfFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept, settle = acceptance._accept, acceptance.settle
    tasks: list[Any] = []

    def accepted(api: Any, request: Any) -> bool:
        if request.operation.recipe == "snapshot_volume":
            raise errors.DatabaseFailed("lost", details="lost")
        return accept(api, request)

    def settled(api: Any, cells: Any, operation: Any) -> None:
        settle(api, cells, operation)
        if operation.recipe == "snapshot_volume":
            tasks.append(instances.get(cells.of_server(operation.instance_uuid)[1], operation.instance_uuid).task_state)

    monkeypatch.setattr(acceptance, "_accept", accepted)
    monkeypatch.setattr(acceptance, "settle", settled)
    server, image_id = image_of_both_volumes(cloud, storage, is_whole=True)
    until(lambda: cloud.admin.image.find_image(image_id), lambda found: found is None, "the image to go")
    assert cloud.wait(server, "ACTIVE").task_state is None
    assert tasks and set(tasks) == {TaskState.IMAGE_SNAPSHOT_PENDING}
    _cell, database = cloud.parts.cells.of_server(server.id)
    asked = actions.newest(database, server.id, "volume_snapshot")
    assert asked is not None and asked.message == acceptance.NOT_ACCEPTED
