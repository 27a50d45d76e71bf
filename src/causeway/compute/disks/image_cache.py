"""Base images on a host: fetched once, checked, and shared by all guests made from them."""

from __future__ import annotations

from pathlib import Path

from oslo_concurrency import lockutils

from causeway import durable
from causeway.clients.image import ImageClient
from causeway.compute.disks.foreign_names import checked
from causeway.context import RequestContext
from causeway.virt.driver import Progress, no_progress


class ImageCache:
    """The directory ``_base`` of a host. A file in it is complete: downloads are renamed into place when verified."""

    def __init__(self, directory: Path, images: ImageClient) -> None:
        self.directory = directory
        self._images = images
        durable.make_folder(directory)
        for path in directory.glob(".*.partial"):
            # A download that ended with an earlier process.
            path.unlink(missing_ok=True)
        # That process may have been killed before it synced the name of an image, and guests will depend on that image.
        durable.sync(directory)

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

    def fetch(self, context: RequestContext, image_id: str, progress: Progress = no_progress) -> Path:
        """The image's file; downloads it if it is not here yet.

        Raises ImageNotFound if the image service no longer has it, ServiceFailed or DiskTransferFailed if the download failed.
        """
        path = self.path(image_id)
        if path.exists():
            return path
        with lockutils.lock(f"image-cache-{path}"):
            if not path.exists():
                self._images.download(context, image_id, path, progress)
        return path
