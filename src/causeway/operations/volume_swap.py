"""Swaps volumes: block storage moves a volume that a server uses, and the server's guest continues on the new one.

The old volume is copied while the guest writes. When the copy is complete, the hypervisor keeps both volumes equal
(`causeway.virt.driver.volume_jobs`). Then the pivot comes: before it the old volume has everything, behind it the new one has.
Then the guest is switched. If the copy broke off after the pivot, the host reports that it can't switch the guest: the guest
keeps the old volume, and the swap ends as failed. Meanwhile the server's task excludes everything that starts the guest. If the
host dies, the server comes up with the volume that its record names when the swap has ended.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TypeAlias

from causeway import errors
from causeway.clients.rights import named
from causeway.devices import device_records, half_reserved
from causeway.model import operations
from causeway.model.block_device import BlockDevice
from causeway.model.states import TaskState
from causeway.model.things import Thing
from causeway.running.operation_run import OperationRun
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import endings, guests
from causeway.servers.undo_late import undo_attachments
from causeway.store.cell import block_devices

LOG = logging.getLogger(__name__)

SWAPPING = {TaskState.SWAPPING_VOLUME}


@dataclass
class SwapMemory:
    """``resource_id``: the volume that the server has; ``new_volume_id``: the one that it will have, of ``new_size`` GiB.

    ``old``, ``new``: the two as devices of the server; ``new`` once it is reserved, and later connected. ``is_switched``: the
    guest uses the new one.
    """

    resource_id: str
    new_volume_id: str
    new_size: int
    old: BlockDevice | None = None
    new: BlockDevice | None = None
    is_switched: bool = False


Swap: TypeAlias = OperationRun[SwapMemory]


class ReserveNewVolume(Step[Swap]):
    """Reserves the new volume for the server, beside the old one."""

    name = "ReserveNewVolume"
    reads = frozenset({"resource_id", "new_volume_id", "new_size"})
    writes = frozenset({"old", "new"})
    makes = frozenset({Thing.ATTACHMENT})

    def do(self, run: Swap) -> None:
        memory, present = run.memory, run.devices()
        memory.old = next((each for each in present if each.volume_id == memory.resource_id), None)
        if memory.old is None:
            raise errors.VolumeNotFound(f"Instance {run.uuid} is not attached to volume {memory.resource_id}.")
        if run.is_repeated:
            # An earlier attempt may have made a reservation that was not recorded.
            self._release(run)
        else:
            notify(run, "start")
        new_id = memory.new_volume_id
        attachment_id = device_records.reserve_volume(
            run.services, run.context, new_id, run.uuid, run.attachments, called_as=named(new_id)
        )
        memory.new = replace(
            memory.old,
            volume_id=memory.new_volume_id,
            volume_size=memory.new_size,
            attachment_id=attachment_id,
            connection_info=None,
        )

    def undo(self, run: Swap) -> None:
        self._release(run)

    def _release(self, run: Swap) -> None:
        # All attachments of the new volume to this server: nothing else makes any.
        new_id = run.memory.new_volume_id
        had = device_records.release_reservations(run.services, run.context, run.uuid, new_id, set())
        if not had and half_reserved.is_in_doubt(run):
            half_reserved.end(run.services, run.context, run.instance(), new_id)


class CopyVolume(Step[Swap]):
    """Copies the old volume to the new one. From then on, the guest's writes go to both."""

    name = "CopyVolume"
    reads = frozenset({"old"})
    writes = frozenset({"new"})
    makes = frozenset({Thing.DEVICE})

    def where(self, run: Swap) -> str | None:
        return run.instance().host

    def do(self, run: Swap) -> None:
        instance, (old, new) = run.instance(), _both(run)
        host = instance.host or ""
        with run.event(run.kind.event, host):
            guests.require_host(run, host)
            copied = run.computes.copy_volume(
                run.context, host, token=run.token(self.name), instance=instance, old=old, new=new
            )
        run.memory.new = copied.volume
        run.transferred(copied.bytes_done)

    def undo(self, run: Swap) -> None:
        instance, (old, new) = run.instance(), _both(run)
        host = instance.host or ""
        if guests.is_dead(run, host):
            # The guest and the copy ended with the host. The old volume has everything.
            return
        run.computes.end_volume_swap(
            run.context, host, token=run.token(self.name), instance=instance, old=old, new=new, keep_new=False
        )


class SwitchVolume(Step[Swap]):
    """Switches the guest to the new volume, unless the copy has broken off."""

    name = "SwitchVolume"
    reads = frozenset({"old", "new"})
    writes = frozenset({"is_switched"})
    pivots = True

    def where(self, run: Swap) -> str | None:
        return run.instance().host

    def do(self, run: Swap) -> None:
        instance, (old, new) = run.instance(), _both(run)
        host = instance.host or ""
        # The guest of a dead host may have been switched. The new volume has everything in both cases.
        run.memory.is_switched = guests.is_dead(run, host) or run.computes.switch_volume(
            run.context, host, token=run.token(self.name), instance=instance, old=old, new=new
        )


class EndSwap(Step[Swap]):
    """Records the volume that the guest uses, and releases the other one to block storage."""

    name = "EndSwap"
    reads = frozenset({"resource_id", "new_volume_id", "old", "new", "is_switched"})

    def where(self, run: Swap) -> str | None:
        return run.instance().host

    def do(self, run: Swap) -> None:
        instance, memory, (old, new) = run.instance(), run.memory, _both(run)
        host, services = instance.host or "", run.services
        if memory.is_switched:
            # Before anything is released: from now on the guest must be started with this volume.
            block_devices.update(
                run.database,
                old.uuid,
                attachment_id=new.attachment_id,
                connection_info=new.connection_info,
                volume_size=new.volume_size,
            )
        if not guests.is_dead(run, host):
            run.computes.end_volume_swap(
                run.context,
                host,
                token=run.token(self.name),
                instance=instance,
                old=old,
                new=new,
                keep_new=memory.is_switched,
            )
        released = old if memory.is_switched else new
        if released.attachment_id is not None:
            services.volumes.delete_attachment(run.context, released.attachment_id)
        kept_id = services.volumes.complete_migration(
            run.context, memory.resource_id, memory.new_volume_id, failed=not memory.is_switched
        )
        if not memory.is_switched:
            _failed(run, errors.GuestFailed(f"The copy of volume {old.volume_id} broke off before it could be used."))
            return
        block_devices.update(run.database, old.uuid, volume_id=kept_id)
        if endings.ended(run, SWAPPING):
            notify(run, "end")


def notify(run: Swap, phase: str, fault: errors.CausewayError | None = None) -> None:
    instance, memory = run.instance(), run.memory
    run.services.notifier.instance_action(
        run.context,
        instance,
        "volume_swap",
        phase,
        host=instance.host or "",
        fault=fault,
        swapped=(memory.resource_id, memory.new_volume_id),
    )


def _both(run: Swap) -> tuple[BlockDevice, BlockDevice]:
    if run.memory.old is None or run.memory.new is None:
        raise RuntimeError("the new volume was not reserved")
    return run.memory.old, run.memory.new


def _failed(run: Swap, cause: errors.CausewayError) -> None:
    endings.failed(run, cause, SWAPPING)
    notify(run, "error", cause)


def _rolled_back(run: Swap, cause: errors.CausewayError) -> None:
    """Restores the server's state with the old volume. Block storage deletes the new one."""
    memory = run.memory
    try:
        run.services.volumes.complete_migration(run.context, memory.resource_id, memory.new_volume_id, failed=True)
    except errors.ServiceRefused as refusal:
        LOG.warning("The migration of volume %s is over already: %s", memory.resource_id, refusal.message)
    _failed(run, cause)


def _undo_late(run: Swap) -> None:
    undo_attachments(run, more_volumes=[run.memory.new_volume_id])


SWAP_VOLUME = Recipe(
    operations.SWAP_VOLUME,
    (ReserveNewVolume(), CopyVolume(), SwitchVolume(), EndSwap()),
    pivot="SwitchVolume",
    rolled_back=_rolled_back,
    undo_late=_undo_late,
    memory=SwapMemory,
)
