"""Where the image service says that an image is: only what can be a snapshot in this host's own cluster is looked at."""

from __future__ import annotations

import errno
from typing import Any, cast

import pytest

from causeway.errors import GuestFailed
from causeway.virt.driver import StoredImage
from causeway.virt.image_formats import begins_raw
from causeway.virt.libvirt.storage.rbd.images import RbdImages
from causeway.virt.libvirt.storage.rbd.protocol import Access, Beginning, Clone, Parent, Read, Refused
from causeway.virt.libvirt.storage.rbd.store import RbdStore

FSID = "6d3f6b2e-0c0a-4f0c-9a5a-0f6b1c2d3e4f"
GLANCE = f"rbd://{FSID}/images/8f1a4b0e-66c5-4d8c-9d35-2b3b0d0c0001/snap"
QCOW2 = b"QFI\xfb\0\0\0\x03" + bytes(1016)


class Client:
    """A cluster whose pools have any image, with this content."""

    def __init__(self, content: bytes = b"raw" + bytes(1021), refuses: int = 0) -> None:
        self.fsid = FSID
        self.access = Access("ceph.conf", "compute", "vms", 5, 5)
        self.asked: list[Any] = []
        self._content, self._refuses = content, refuses

    def ask(self, call: Any, _answer: Any) -> Any:
        self.asked.append(call)
        if self._refuses:
            raise Refused(self._refuses, "no")
        return Beginning(1 << 30, self._content) if isinstance(call, Read) else None

    def close(self) -> None:
        pass


def images(client: Client) -> RbdImages:
    return RbdImages(RbdStore(cast(Any, client)), 1.0)


def test_an_image_in_the_same_cluster_is_opened_and_cloned() -> None:
    client = Client()
    found = images(client).at(GLANCE)
    assert found == StoredImage(GLANCE, 1 << 30)
    images(client).clone(found, "disk")
    parent = Parent("images", "8f1a4b0e-66c5-4d8c-9d35-2b3b0d0c0001", "snap")
    opened, cloned = client.asked
    assert opened.image == parent and cloned == Clone(parent, "disk")


@pytest.mark.parametrize(
    "location",
    [
        "",
        "file:///var/lib/glance/images/1",
        "rbd://image",
        GLANCE.replace(FSID, FSID[:-1] + "0"),
        GLANCE.replace(FSID, FSID.upper()),
        GLANCE.replace("/snap", ""),
        f"{GLANCE}/more",
        f"{GLANCE}\n",
        f"{GLANCE}?conf=x",
        f" {GLANCE}",
        GLANCE.replace("images", "--pool"),
        GLANCE.replace("images", ".."),
        GLANCE.replace("images", "im%2Fages"),
        GLANCE.replace("images", "images:conf=x"),
        GLANCE.replace("snap", "@snap"),
        GLANCE.replace("snap", "s" * 300),
        GLANCE.replace("images", "imäges"),
    ],
)
def test_another_location_is_neither_opened_nor_cloned(location: str) -> None:
    client = Client()
    assert images(client).at(location) is None
    with pytest.raises(GuestFailed, match="An image is not in the storage"):
        images(client).clone(StoredImage(location, 1), "disk")
    assert client.asked == []


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EPERM, errno.EACCES, errno.EINVAL])
def test_an_image_that_ceph_does_not_let_the_host_open_is_not_cloned(number: int) -> None:
    assert images(Client(refuses=number)).at(GLANCE) is None


@pytest.mark.parametrize("content", [QCOW2, b"KDMV" + bytes(1020), b"VHDXFILE".lower() + bytes(1016)])
def test_bytes_of_another_format_are_not_cloned(content: bytes) -> None:
    assert images(Client(content)).at(GLANCE) is None


def test_partition_tables_and_short_content_are_raw() -> None:
    table = bytes(446) + b"\x80\0\0\0\x83\0\0\0\x01\0\0\0\x01\0\0\0" + bytes(48) + b"\x55\xaa"
    assert all(begins_raw(content) for content in (table + bytes(1 << 16), b"", b"x", bytes(512 << 10)))


def test_a_host_that_may_not_write_to_the_image_service_s_pool_makes_and_deletes_nothing_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, glance = Client(), Client(refuses=errno.EPERM)
    monkeypatch.setattr(RbdStore, "of_pool", lambda *_arguments: RbdStore(cast(Any, glance)))
    assert images(own).store("disk", "copied", "image", GLANCE) is None
    images(own).delete_stored("image", GLANCE)
    assert glance.asked and own.asked == []
