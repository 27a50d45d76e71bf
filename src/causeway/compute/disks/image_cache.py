"""Base images on a host: fetched once, checked, and shared by all guests made from them.

::

    _base/IMAGE             the file of an image; it is complete, and its content was checked
    _base/.IMAGE.checked    what was found: how programs open it, and how large it is as a disk (JSON)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import msgspec
from oslo_concurrency import lockutils

from causeway import durable
from causeway.clients.image import ImageClient
from causeway.compute.disks.foreign_names import checked
from causeway.context import RequestContext
from causeway.model.image import BOOTABLE_FORMATS
from causeway.virt import image_formats
from causeway.virt.driver import BaseImage, Progress, no_progress
from causeway.virt.image_formats import FoundImage

_DECODER = msgspec.json.Decoder(FoundImage)


@dataclass
class ImageCache:
    """The directory ``_base`` of a host. ``allowed``: the formats of images that it accepts."""

    directory: Path
    images: ImageClient
    allowed: Collection[str] = BOOTABLE_FORMATS

    def __post_init__(self) -> None:
        durable.make_folder(self.directory)
        for path in self.directory.glob(".*.partial"):
            # A download that ended with an earlier process.
            path.unlink(missing_ok=True)
        # That process may have been killed before it synced the name of an image, and guests will depend on that image.
        durable.sync(self.directory)

    def path(self, image_id: str) -> Path:
        """Where the file of that name is, or will be. Other hosts name base images: raises DiskTransferFailed for a path."""
        return self.directory / checked(image_id)

    def received(self, what: str, instance_uuid: str) -> Path:
        """The file for a server's disk that arrives at this host."""
        return self.path(f"{what}.part-of-{instance_uuid}")

    def discard_received(self, instance_uuid: str) -> None:
        """Deletes what was received for a server, also by an earlier process."""
        for path in self.directory.glob(f"*.part-of-{instance_uuid}*"):
            path.unlink(missing_ok=True)

    def find(self, image_id: str) -> BaseImage | None:
        """The image, if it is here and was checked."""
        path = self.path(image_id)
        try:
            found = durable.read(_note_of(path), _DECODER.decode)
        except durable.Torn:
            found = None
        return BaseImage(path, found.disk_format, found.virtual_size) if found is not None and path.exists() else None

    def fetch(
        self, context: RequestContext, image_id: str, progress: Progress = no_progress, *, most_gb: int | None = None
    ) -> BaseImage:
        """The image; downloads it if it is not here yet.

        ``most_gb``: the most GiB that it may have as a disk (0: see `most_bytes`); None: no disk is made of its size.

        Raises ImageNotFound if the image service no longer has it, ServiceFailed or DiskTransferFailed if the download failed,
        ImageRefused if it is not in the format that the image service says, or if that is not allowed, if it names other files,
        and if it is too large.
        """
        found = self.find(image_id)
        if found is None:
            with lockutils.lock(f"image-cache-{self.path(image_id)}"):
                found = self.find(image_id) or self._admit(context, image_id, progress)
        if most_gb is not None:
            image_formats.check_size(f"Image {image_id}", found.virtual_size, self.most_bytes(most_gb))
        return found

    def most_bytes(self, size_gb: int) -> int:
        """The most bytes of a disk for a flavor with a root disk of ``size_gb``.

        0 means: as large as the image. Placement knows no size then, so only what no host could hold is refused.
        """
        return image_formats.most_bytes(size_gb, self.directory)

    def _admit(self, context: RequestContext, image_id: str, progress: Progress) -> BaseImage:
        path, what = self.path(image_id), f"Image {image_id}"
        image = self.images.show_of_server(context, image_id)
        image_formats.check_allowed(image.disk_format, what, self.allowed)
        # A file without a note is from release 0.1.0, which did not check it in this way.
        unchecked = path if path.exists() else path.with_name(f".{path.name}.unchecked.partial")
        try:
            if unchecked != path:
                self.images.download(context, image_id, unchecked, progress, image=image)
            found = image_formats.inspect(unchecked, image.disk_format, what, self.allowed)
            durable.write(_note_of(path), msgspec.json.encode(found))
            if unchecked != path:
                durable.settle(unchecked, path)
        finally:
            if unchecked != path:
                unchecked.unlink(missing_ok=True)
        return BaseImage(path, found.disk_format, found.virtual_size)


def _note_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.checked")
