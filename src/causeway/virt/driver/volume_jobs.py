"""What the volume service asks of a hypervisor: to change volumes that its guests have open. All of it is optional.

**A swap** moves a running guest from one volume to another. `copy_volume` copies the old volume while the guest writes to it.
When the copy is complete, every write goes to both volumes before the guest hears that it is done. So both have everything that
the guest relies on, until `switch_volume` has the guest use only the new one. Whoever must choose between them chooses the old
volume as long as no switch was ordered, and the new one afterwards. `end_volume_swap` disconnects the other one.

**An assisted snapshot** moves a guest to a new file on top of the volume's present one. Block storage made the new file. As
long as nothing is written to it, starting the guest from it is the same as starting it from the file below.
"""

from __future__ import annotations

from collections.abc import Callable

from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.virt.driver.support import unsupported

# (bytes done, bytes total)
CopyProgress = Callable[[int, int], None]

_SWAP = "swap volumes"


class VolumeJobMethods:
    """A part of `causeway.virt.driver.Driver`. Both volumes have the same device name; the guest knows the id of the old one."""

    def copy_volume(
        self,
        uuid: str,  # noqa: ARG002
        old: BlockDevice,  # noqa: ARG002
        new: BlockDevice,  # noqa: ARG002
        progress: CopyProgress,  # noqa: ARG002
    ) -> None:
        """Connects ``new``, copies ``old`` to it and keeps them equal. Joins a copy that is under way.

        An exception from ``progress`` ends the copy. Raises `GuestFailed` if the guest neither runs nor is paused, if it does
        not have ``old``, or if the copy breaks off. The guest then has only ``old``, and ``new`` is not connected.
        """
        raise unsupported(_SWAP)

    def switch_volume(self, uuid: str, old: BlockDevice, new: BlockDevice) -> bool:  # noqa: ARG002
        """Has the guest use only ``new`` from now on. False: it still uses ``old``, and the copy is useless.

        Already done: True. For a guest that is off by now, the answer follows from what was last done to it.
        """
        raise unsupported(_SWAP)

    def end_volume_swap(self, uuid: str, old: BlockDevice, new: BlockDevice, *, keep_new: bool) -> None:  # noqa: ARG002
        """Ends a copy that is under way and disconnects the volume that is not kept. Already done: nothing happens.

        Raises `GuestFailed` if a living guest uses the volume that is not kept.
        """
        raise unsupported(_SWAP)

    def snapshot_volume(self, instance: Instance, volume: BlockDevice, new_file: str) -> bool:  # noqa: ARG002
        """From now on the guest writes to ``new_file``, beside the present file of its volume. Already done: nothing happens.

        An agent in the guest keeps its file systems still at that instant, if it answers. A guest that is off uses the file
        from its next start. False: this was refused, and the guest stays in its present file. Raises `GuestFailed` if which of
        the two is true can't be found out.
        """
        raise unsupported("make snapshots of volumes")

    def merge_volume_files(
        self,
        instance: Instance,  # noqa: ARG002
        volume: BlockDevice,  # noqa: ARG002
        merged: str | None,  # noqa: ARG002
        into: str | None,  # noqa: ARG002
        progress: CopyProgress,  # noqa: ARG002
    ) -> None:
        """Merges the file ``merged`` of the volume into the file ``into`` below it. The guest keeps running.

        ``into`` None: merges everything between the guest's file and ``merged`` (None: everything below) into the guest's
        file. Already done: nothing happens.
        """
        raise unsupported("merge files of volumes")
