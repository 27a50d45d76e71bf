"""The image client: records, bytes, and what is left when something breaks."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from causeway import errors
from causeway.clients.image import ImageClient
from causeway.clients.rights import OF_SERVER
from causeway.clients.session import calls
from causeway.context import RequestContext
from causeway.devcloud import Fault
from causeway.model.image import ImageMeta

MIB = 1 << 20
DATA = bytes(range(256)) * 4096 + bytes(2 * MIB) + b"end"


def queued(images: ImageClient, context: RequestContext, **more: object) -> ImageMeta:
    return images.create(context, name="disk", disk_format="qcow2", container_format="bare", **more)  # type: ignore[arg-type]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    path.write_bytes(DATA)
    return path


def test_what_was_uploaded_is_downloaded(images: ImageClient, demo: RequestContext, file: Path, tmp_path: Path) -> None:
    image = queued(images, demo, properties={"hw_disk_bus": "virtio", "left_out": None}, min_disk=1)
    sent: list[tuple[int, int]] = []
    images.upload(demo, image.id, file, progress=lambda done, total: sent.append((done, total)))
    received: list[tuple[int, int]] = []
    meta = images.download(demo, image.id, tmp_path / "copy", lambda done, total: received.append((done, total)))

    assert (tmp_path / "copy").read_bytes() == DATA
    assert (meta.size, meta.status, meta.min_disk, meta.properties) == (
        len(DATA),
        "active",
        1,
        {"hw_disk_bus": "virtio"},
    )
    assert sent[-1] == received[-1] == (len(DATA), len(DATA))
    assert len(sent) == 4
    assert sorted(received) == received


def test_runs_of_zeros_take_no_room(images: ImageClient, demo: RequestContext, tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(b"x" + bytes(8 * MIB - 1))
    image = queued(images, demo)
    images.upload(demo, image.id, tmp_path / "disk")
    images.download(demo, image.id, tmp_path / "copy")
    status = (tmp_path / "copy").stat()
    assert status.st_size == 8 * MIB
    assert status.st_blocks * 512 < MIB


def test_making_an_image_of_a_given_id_may_be_repeated(images: ImageClient, demo: RequestContext) -> None:
    image_id = str(uuid.uuid4())
    first = queued(images, demo, image_id=image_id)
    assert queued(images, demo, image_id=image_id) == first
    assert first.id == image_id


def test_data_is_sent_once(images: ImageClient, demo: RequestContext, file: Path) -> None:
    image = queued(images, demo)
    images.upload(demo, image.id, file)
    with pytest.raises(errors.ServiceRefused):
        images.upload(demo, image.id, file)


@pytest.mark.parametrize("action", ["drop", "corrupt"])
def test_a_download_that_breaks_leaves_no_file(
    images: ImageClient, demo: RequestContext, file: Path, tmp_path: Path, around: object, action: str
) -> None:
    image = queued(images, demo)
    images.upload(demo, image.id, file)
    around.cloud.faults.add(Fault(action=action, path="/file$", method="GET", after_bytes=MIB))  # type: ignore[attr-defined, arg-type]
    (tmp_path / "there").mkdir()
    with pytest.raises(errors.ServiceFailed):
        images.download(demo, image.id, tmp_path / "there" / "copy")
    assert list((tmp_path / "there").iterdir()) == []


def test_an_upload_that_breaks_fails_and_may_be_sent_again(
    images: ImageClient, demo: RequestContext, file: Path, around: object
) -> None:
    image = queued(images, demo)
    around.cloud.faults.add(Fault(action="drop", path="/file$", method="PUT", after_bytes=MIB, times=1))  # type: ignore[attr-defined]
    with pytest.raises((errors.ServiceFailed, errors.ServiceRefused)):
        images.upload(demo, image.id, file)
    images.upload(demo, image.id, file)
    assert images.show(demo, image.id).size == len(DATA)


def test_an_image_without_data_can_not_be_downloaded(images: ImageClient, demo: RequestContext, tmp_path: Path) -> None:
    image = queued(images, demo)
    with pytest.raises(errors.ServiceRefused, match="has no data"):
        images.download(demo, image.id, tmp_path / "copy")


def test_deleting_what_is_not_there_is_fine(images: ImageClient, demo: RequestContext) -> None:
    image = queued(images, demo)
    images.delete(demo, image.id)
    images.delete(demo, image.id)
    with pytest.raises(errors.ImageNotFound, match=image.id):
        images.show(demo, image.id)


def test_lists_are_whole_and_filtered(
    images: ImageClient, demo: RequestContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causeway.clients.image.PAGE_SIZE", 2)
    made = {queued(images, demo, properties={"batch": "seven"}).id for _ in range(5)}
    assert {image.id for image in images.list_of(demo, demo.project_id or "", {"batch": "seven"})} == made


def test_without_a_token_the_image_belongs_to_the_project_of_the_context(
    images: ImageClient, demo: RequestContext, nobody: RequestContext
) -> None:
    nobody.project_id = demo.project_id
    image = queued(images, nobody, called_as=OF_SERVER)
    assert images.show(demo, image.id).owner == demo.project_id


def test_calls_are_counted_by_route(images: ImageClient, demo: RequestContext) -> None:
    image = queued(images, demo)
    calls.reset()
    images.show(demo, image.id)
    assert calls.snapshot() == {"image GET /v2/images/{image_id}": 1}
