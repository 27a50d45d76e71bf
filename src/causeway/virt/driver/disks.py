"""The disks of a guest while its server moves: they are sent, stashed, restored and deleted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager

from causeway.model.instance import Instance
from causeway.virt.driver.facts import DiskExport
from causeway.virt.driver.support import unsupported


class DiskMethods(ABC):
    """A part of `causeway.virt.driver.Driver`."""

    # required

    @abstractmethod
    def export_disk(self, instance: Instance, name: str, *, flatten: bool) -> AbstractContextManager[DiskExport]:
        """A disk of a stopped or paused guest as a file: what differs from its image, or (``flatten``) everything.

        Raises `GuestFailed` if the guest runs, or has no such disk.
        """

    @abstractmethod
    def stash_disks(self, uuid: str) -> None:
        """Puts the disks of a destroyed guest aside. Already stashed, or no disks at all: nothing happens."""

    @abstractmethod
    def restore_stashed_disks(self, uuid: str) -> None:
        """Puts stashed disks where the guest uses them. Not stashed: nothing happens.

        Raises `GuestFailed` if other disks are there: the driver does not guess which of them to keep.
        """

    @abstractmethod
    def delete_stashed_disks(self, uuid: str) -> None:
        """Deletes the stashed disks of a server. Not stashed: nothing happens."""

    @abstractmethod
    def delete_disks(self, uuid: str) -> None:
        """Deletes the disks of a server (not stashed ones). Raises `GuestFailed` if a guest uses them."""

    # optional

    def export_running_disk(self, instance: Instance, name: str) -> AbstractContextManager[DiskExport]:  # noqa: ARG002
        """All of a disk of a running guest, as it is at one instant, as a file. The guest keeps running.

        Raises `GuestFailed` if there is no such guest or disk, or if the guest stops before its disk is copied.
        """
        raise unsupported("copy a disk while its guest runs")

    def export_kept_state(self, instance: Instance) -> AbstractContextManager[DiskExport]:  # noqa: ARG002
        """The state of firmware and TPM of a stopped or paused guest as a file, also if there is no state yet.

        Asked only of servers whose image or flavor wants UEFI or a TPM. Raises `GuestFailed` if the guest runs.
        """
        raise unsupported("move the state of firmware and TPMs")
