"""Disks in storage that several hosts reach: a server moves without them. All of it is optional.

A driver that has such storage says so by `storage`. `causeway.virt.shared_disks` says whose a disk is and what each act does to
it; a driver leaves that to `causeway.virt.shared_disks.ownership`.
"""

from __future__ import annotations

from causeway.model.instance import Instance
from causeway.model.shared_disk import SharedDisk, StoredDisk
from causeway.virt.driver.specs import StoredImage
from causeway.virt.driver.support import unsupported


class SharedDiskMethods:
    """A part of `causeway.virt.driver.Driver`."""

    def storage(self) -> str | None:
        """Which store new disks of this host's guests are made in; the same for all hosts that reach it. None: the host's own."""
        return None

    def stored_image(self, location: str) -> StoredImage | None:  # noqa: ARG002
        """The image at a location of the image service (a URL, which is checked), if root disks can be made of it there.

        The host has opened it, and it is raw. Changes nothing.
        """
        return None

    def stores_images(self) -> bool:
        """Whether `store_image` may be worth a try."""
        return False

    def store_image(self, instance: Instance, name: str, image_id: str, beside: str) -> StoredImage | None:  # noqa: ARG002
        """Makes an image of a disk as it is at one instant, in the storage and the pool of the image at ``beside``.

        ``beside``: a location of the image service, as for `stored_image`. The image stands alone. One of that id is replaced.
        The guest continues to run. None: this disk or this location is elsewhere, or the storage refuses; then nothing is left.
        """
        return None

    def delete_stored_image(self, image_id: str, beside: str) -> None:
        """Deletes what `store_image` made, if it did. Called only when the image service does not have it."""

    def shared_disks(self, uuid: str) -> dict[str, SharedDisk]:  # noqa: ARG002
        """The disks of a guest of this host that other hosts can take over, by name.

        Raises `GuestFailed` if they are not this host's own.
        """
        return {}

    def reaches_disks(self, offered: dict[str, SharedDisk]) -> bool:  # noqa: ARG002
        """Whether this host really sees these disks of a guest of another host. Changes nothing."""
        return False

    def list_storage(self) -> list[StoredDisk]:
        """All disks in the store, of all hosts."""
        return []

    def remove_from_storage(self, name: str) -> None:  # noqa: ARG002
        """Deletes a disk that belongs to no server any more. Raises `GuestFailed` if somebody has it open."""
        raise unsupported("keep disks in storage that several hosts share")

    def settle_disks(self, uuid: str) -> None:
        """Makes the shared disks of a guest that arrived live, or was evacuated, this host's for good. May be repeated."""

    def take_over_disks(self, uuid: str, names: list[str], dead_host: str) -> list[str]:  # noqa: ARG002
        """Makes those of the named disks that ``dead_host`` kept in storage that this host reaches its own, as they are.

        What still writes to them there can't any more. Returns their names. Until `settle_disks`, deleting the guest's disks
        returns them.
        """
        return []
