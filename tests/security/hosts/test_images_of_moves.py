"""Images that carry a move: no tenant reads, writes or replaces them, and nothing is believed without the source's digest."""

from __future__ import annotations

import hashlib
import uuid as uuids
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openstack import exceptions

from causeway import errors
from causeway.compute.handover import sent_images
from causeway.context import RequestContext, admin_context
from causeway.model.image import ImageMeta
from causeway.model.outcomes import Snapshot
from causeway.moves.steps import images
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.patience import until

# Hosts of different cells do not reach one another, so what is moved goes through the image service.
CLOUD = {"overrides": {"moves": {"direct": "never", "warm": "never", "patience": 0.0, "whole_tries": 1}}}
CONTENT = b"what the source sent" * 1000


def move_of(cloud: Cloud, server: Any) -> Any:
    return until(lambda: cloud.moves(server), bool, "the move")[-1]


def image_id_of(move: Any) -> str:
    """The id of the image for the root disk, as whoever knows the move's id computes it."""
    return images.image_id_of(SimpleNamespace(move=move))  # type: ignore[arg-type]


def test_nobody_but_us_sees_or_changes_the_image_of_a_move(cloud: Cloud) -> None:
    server = cloud.boot()
    owner = cloud.admin.identity.find_project("service").id
    with cloud.held("finish_snapshot_based_resize_at_dest") as sent:
        cloud.member.compute.resize_server(server.id, "gen2.small")
        assert sent.wait(60)
        image_id = image_id_of(move_of(cloud, server))
        made = cloud.admin.image.get_image(image_id)
        assert (made.owner_id, made.visibility, made.status) == (owner, "private", "active")
        assert image_id not in [image.id for image in cloud.member.image.images()]
        with pytest.raises(exceptions.NotFoundException):
            cloud.member.image.get_image(image_id)
        assert cloud.member.image.delete(f"/images/{image_id}").status_code in (403, 404)
        binary = {"Content-Type": "application/octet-stream"}
        answer = cloud.member.image.put(f"/images/{image_id}/file", data=b"mine", headers=binary)
        assert answer.status_code in (403, 404)
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    assert cloud.admin.image.find_image(image_id) is None


def test_a_move_does_not_use_an_image_that_somebody_made_in_its_place(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a member had known the move's id before the move began."""
    server = cloud.boot()
    before = cloud.reality(server)
    theirs = cloud.member.image.create_image(
        "theirs", data=b"bytes of a tenant", disk_format="qcow2", container_format="bare"
    )
    monkeypatch.setattr(images, "image_id_of", lambda *_run: theirs.id)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert "somebody else has made one" in str([fault.message for fault in cloud.faults(server)])
    monkeypatch.undo()
    assert cloud.reality(server) == before


class Service:
    """As much of the image service as a source asks. ``status`` and ``content``: of the image."""

    def __init__(self, status: str, content: bytes = CONTENT, algorithm: str | None = "sha512") -> None:
        digest = hashlib.new(algorithm, content).hexdigest() if algorithm else None
        self.image = ImageMeta("image", status=status, size=len(content), os_hash_algo=algorithm, os_hash_value=digest)

    def show_of_server(self, _context: RequestContext, _image_id: str) -> ImageMeta:
        return self.image


def said(service: Service, path: Path) -> str:
    host: Any = SimpleNamespace(images=service)
    refusal = errors.ServiceRefused("It has its data already.")
    return sent_images.digest_of_present(host, admin_context(), "image", path, refusal)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    path.write_bytes(CONTENT)
    return path


def test_what_an_earlier_attempt_sent_has_a_digest(file: Path) -> None:
    assert said(Service("active"), file) == hashlib.sha256(CONTENT).hexdigest()


@pytest.mark.parametrize(
    "service",
    [
        Service("active", b"bytes of somebody else"),
        Service("active", algorithm=None),
        Service("saving"),
        Service("deactivated", b"x"),
        Service("killed", b""),
    ],
)
def test_what_is_there_already_and_is_not_ours_is_refused(file: Path, service: Service) -> None:
    with pytest.raises(errors.DiskTransferBroken):
        said(service, file)


def test_an_image_that_takes_data_all_the_same_is_refused_as_the_service_said(file: Path) -> None:
    with pytest.raises(errors.ServiceRefused, match="It has its data already"):
        said(Service("queued"), file)


def test_a_target_takes_nothing_without_a_digest() -> None:
    snapshot = Snapshot(str(uuids.uuid4()), "qcow2", 5)
    with pytest.raises(errors.DiskTransferFailed, match="no digest"):
        sent_images.expected(snapshot)
    snapshot.sha256 = "0" * 64
    assert sent_images.expected(snapshot).os_hash_value == "0" * 64
