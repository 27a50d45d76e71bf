"""Warm copies: the disks of a guest are copied while it runs, round by round. All of it is optional.

A driver that sets `supports_warm_copy` has all of these methods. `causeway.virt.warm` says what a round is.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from causeway.model.instance import Instance
from causeway.virt.driver.specs import DiskCopy, GuestSpec
from causeway.virt.driver.support import unsupported
from causeway.virt.warm import DiskReader, DiskWriter, Round

_COPY = "copy disks while their guest runs"


class WarmCopyMethods:
    """A part of `causeway.virt.driver.Driver`."""

    #: can copy the disks of a guest while it runs
    supports_warm_copy: bool = False

    # at the source

    def begin_round(
        self,
        instance: Instance,  # noqa: ARG002
        names: list[str],  # noqa: ARG002
        number: int,  # noqa: ARG002
        *,
        since: int | None,  # noqa: ARG002
        flatten: bool,  # noqa: ARG002
    ) -> Round:
        """Makes the named disks readable as they are at this instant, and records from now on what changes. Ends an open round.

        ``since``: the round has only what changed since that earlier one; if that is no longer known (the hypervisor was
        killed), it has everything. ``flatten``: the target does not have the base image.

        If ``since`` is given, an agent in the guest keeps its file systems still at that instant; without an answer of the
        agent the round begins all the same, unless the image requires one.

        Raises `WarmCopyImpossible` if the image requires an agent that does not answer, or if the guest does not run or can't
        be read this way.
        """
        raise unsupported(_COPY)

    def has_round(self, instance: Instance, number: int) -> bool:  # noqa: ARG002
        """Whether this round can be read: it was begun and not ended, and the guest has run since."""
        return False

    def open_round(self, instance: Instance, name: str, number: int) -> AbstractContextManager[DiskReader]:  # noqa: ARG002
        """A disk of a round. Raises `GuestFailed` if the round can no longer be read."""
        raise unsupported(_COPY)

    def end_round(self, instance: Instance, number: int) -> None:  # noqa: ARG002
        """The round can no longer be read; what changed since it stays known. Already ended: nothing happens."""
        raise unsupported(_COPY)

    def open_changes(
        self,
        instance: Instance,  # noqa: ARG002
        name: str,  # noqa: ARG002
        since: int,  # noqa: ARG002
    ) -> AbstractContextManager[DiskReader | None]:
        """What changed of a disk, also a stashed one, from a round until its guest was off; None: that is not known."""
        raise unsupported(_COPY)

    def limit_writes(self, instance: Instance, bytes_per_second: int | None) -> None:  # noqa: ARG002
        """Limits what the running guest writes to each local disk, if its own limits are not lower. None: only its own hold.

        A guest that boots has its own limits. One that is off or does not exist is no failure.
        """
        raise unsupported("limit what a guest writes")

    def end_rounds(self, uuid: str) -> None:
        """Ends all rounds of the guest, whether it runs, is off or does not exist. Nothing records changes any more."""

    # at the target

    def open_copy(self, copy: DiskCopy) -> AbstractContextManager[DiskWriter]:  # noqa: ARG002
        """Opens, or makes, the disk that rounds are written to. From then on there is a file ``copy.path``.

        The file later becomes a `RootDisk.snapshot`, with ``is_copy``.
        """
        raise unsupported(_COPY)

    def has_copy(self, path: Path) -> bool:
        """Whether there is such a disk, which no guest has yet."""
        return path.exists()

    def discard_copy(self, path: Path) -> None:
        """Deletes what the driver has of such a disk beside the file ``path``, which the caller deletes. May be repeated."""

    def adopt_disks(self, spec: GuestSpec) -> None:  # noqa: ARG002
        """Puts the disks that arrived where `spawn` finds them. Already done: nothing happens.

        Unlike disks that `spawn` makes, they stay whatever fails later.
        """
        raise unsupported(_COPY)
