"""What a hypervisor does to volumes that its guests have open: the part of the driver interface that volume services ask for.

**A swap** switches a running guest to another volume. `copy_volume` copies all of the old one while the guest writes; from its
end on every write goes to both volumes before the guest hears that it is done. So each of them has everything that the guest
counts on, until `switch_volume` has the guest use the new one alone. Whoever may have to decide between the two may therefore
choose the old one until the switch was ordered, and the new one from then on. `end_volume_swap` disconnects the other one.

**An assisted snapshot** switches a guest to a new file on top of the volume's present one. Block storage has made that file; as
long as nothing is written to it, starting a guest from it is the same as starting it from the file below.
"""

from __future__ import annotations

from collections.abc import Callable

from causeway.errors import NotImplementedHere
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance

# (bytes done, bytes total)
CopyProgress = Callable[[int, int], None]


class VolumeJobs:
    """A part of `causeway.virt.driver.Driver`. Both volumes have one device name, and the guest knows the old one's id."""

    def copy_volume(self, uuid: str, old: BlockDevice, new: BlockDevice, progress: CopyProgress) -> None:  # noqa: ARG002
        """Connects ``new``, copies ``old`` to it and keeps both alike. A copy that is under way is joined.

        What ``progress`` raises ends the copy. Raises `GuestFailed` if there is no guest that runs or is paused, if it has not
        ``old``, or if the copy breaks off. Then it has ``old`` alone, and ``new`` is not connected.
        """
        raise NotImplementedHere("The hypervisor can't swap volumes.")

    def switch_volume(self, uuid: str, old: BlockDevice, new: BlockDevice) -> bool:  # noqa: ARG002
        """The guest uses ``new`` alone from now on. False: it has ``old`` still, and its copy is of no use any more.

        Done before: True. The answer for a guest that is off meanwhile follows from what was last done to it.
        """
        raise NotImplementedHere("The hypervisor can't swap volumes.")

    def end_volume_swap(self, uuid: str, old: BlockDevice, new: BlockDevice, *, keep_new: bool) -> None:  # noqa: ARG002
        """Ends a copy that is under way and disconnects the other volume. Done before: nothing happens.

        Raises `GuestFailed` if a guest that lives uses the volume that is not kept.
        """
        raise NotImplementedHere("The hypervisor can't swap volumes.")

    def snapshot_volume(self, instance: Instance, volume: BlockDevice, new_file: str) -> bool:  # noqa: ARG002
        """From now on the guest writes to ``new_file``, beside its volume's present file. Done before: nothing happens.

        An agent in the guest keeps its file systems still at that instant, if it answers. A guest that is off has the file with
        its next start. False: it was refused, and the guest stays in the present file. Raises `GuestFailed` if nobody can say.
        """
        raise NotImplementedHere("The hypervisor can't make snapshots of volumes.")

    def merge_volume_files(
        self,
        instance: Instance,  # noqa: ARG002
        volume: BlockDevice,  # noqa: ARG002
        merged: str | None,  # noqa: ARG002
        into: str | None,  # noqa: ARG002
        progress: CopyProgress,  # noqa: ARG002
    ) -> None:
        """Merges the file ``merged`` of the volume into ``into``, which is below it. ``into`` None: what is between the guest's
        file and ``merged`` (None: all below it) goes into the guest's file. Done before: nothing happens. The guest runs on.
        """
        raise NotImplementedHere("The hypervisor can't merge files of volumes.")
