"""The step in which the source hands over the server: it powers the guest off, and sends or offers its disks."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from causeway import errors
from causeway.clients.rights import SERVICE
from causeway.model.block_device import BlockDevice
from causeway.model.outcomes import GuestOutcome, SourceOutcome
from causeway.model.states import MigrationStatus, PowerState, TaskState
from causeway.model.things import Thing
from causeway.moves import events
from causeway.moves.dead_hosts import answering, at_source
from causeway.moves.events import EventNames
from causeway.moves.move_run import Run
from causeway.moves.notices import notified
from causeway.moves.recipe import Step
from causeway.moves.steps.dead_source import restore_records_only
from causeway.moves.steps.direct import is_direct, require_own_address
from causeway.moves.steps.images import KEPT, delete_incomplete_images, image_ids_of, make_images
from causeway.moves.steps.reservations import reserve_once, volumes
from causeway.moves.steps.shared_disks import note_handed_over
from causeway.servers.unplugged import warn_of_unplugged
from causeway.store.cell import block_devices, instances

LOG = logging.getLogger(__name__)


class HandOver(Step):
    """Has the source power the guest off, offer its local disks to the target, and remove the guest but stash its disks.

    A source of another cell sends the disks into images, unless they were copied directly while the guest ran.

    Undo starts the guest from the stashed disks, with its ports and volumes.
    """

    name = "HandOver"
    reads = frozenset(
        {
            "attachments",
            "carries_firmware",
            "keeps_memory",
            "local_devices",
            "old_vm_state",
            "runs_in_error",
            "selection",
            "shared",
            "source_cell",
            "source_host",
            "volume_backed",
        }
    )
    writes = frozenset(
        {"disk_image_ids", "disks", "image_id", "image_round", "offer", "shared", "snapshot", "source_is_dead", "warm"}
    )
    makes = frozenset({Thing.ATTACHMENT, Thing.IMAGE})
    event: ClassVar[EventNames] = events.HAND_OVER
    undo_event: ClassVar[EventNames] = events.HAND_OVER_UNDONE
    notice: ClassVar[str] = "resize"
    #: the server's task while the source hands it over, and afterwards
    task_while_leaving: ClassVar[TaskState] = TaskState.RESIZE_MIGRATING
    task_after_leaving: ClassVar[TaskState] = TaskState.RESIZE_MIGRATED
    migration_status = MigrationStatus.MIGRATING
    has_guest_off = True

    def where(self, run: Run) -> str | None:
        return run.memory.source_host

    def do(self, run: Run) -> None:
        memory = run.memory
        instances.update(run.source_database, run.uuid, expected_task=memory.tasks, task_state=self.task_while_leaving)
        self._make_images(run)
        instance = run.source_instance()
        # The record was read some moments ago, so it may have another task.
        instance.task_state = self.task_while_leaving
        migrated: dict[str, Any] = {
            "task_state": self.task_after_leaving,
            "power_state": self._power_state_after_leaving(run),
        }
        migrated |= place_after_handing_over(run)
        with (
            notified(run, self.notice, memory.source_host, instance, then=migrated, block_devices=run.source_devices()),
            self.event.during(run, memory.source_host),
            answering(run, at_source),
        ):
            try:
                outcome = self._hand_over(run)
            except errors.WarmCopyImpossible as failure:
                LOG.info("Move %s sends all of the disks: %s", run.move.id, failure.message)
                self._send_all(run)
                outcome = self._hand_over(run)
        if outcome.offer is not None:
            require_own_address(run, self.name, outcome.offer.url)
        memory.snapshot, memory.disks, memory.offer = outcome.snapshot, outcome.disks, outcome.offer
        note_handed_over(run, outcome.shared)
        run.transferred(memory.bytes_handed_over)
        for device, volume_id in volumes(run.source_devices()):
            self._swap_attachment(run, device, volume_id)
        with run.source_database.write() as connection:
            for device, volume_id in volumes(run.source_devices()):
                pair = memory.pair(volume_id)
                block_devices.update_in(connection, device.uuid, attachment_id=pair.source, connection_info=None)
            # This fails if the server was deleted meanwhile.
            written: dict[str, Any] = {"power_state": outcome.power_state, "task_state": self.task_after_leaving}
            instances.swap_in(connection, run.uuid, expected_task=memory.tasks, **written)
        for device, volume_id in volumes(run.source_devices()):
            device.attachment_id, device.connection_info = memory.pair(volume_id).source, None
        run.keep_records(memory.source_cell, **written)

    def _power_state_after_leaving(self, run: Run) -> PowerState:  # noqa: ARG002
        """Returns the guest's power state after the source has handed it over."""
        return PowerState.SHUTDOWN

    def _make_images(self, run: Run) -> None:
        """Makes images for the disks that the source sends. If it offers the disks, none are needed."""
        if not is_direct(run):
            make_images(run)

    def _send_all(self, run: Run) -> None:
        """Prepares to send the whole disks: the hypervisor was killed, so the changes since the last round are unknown."""
        if run.memory.warm is not None:
            run.memory.warm.received = None
        run.memory.image_round += 1
        self._make_images(run)
        run.save()

    def _hand_over(self, run: Run) -> SourceOutcome:
        """Has the source shut the guest down, and send or offer its disks.

        Raises WarmCopyImpossible if the whole disks must be sent.
        """
        direct = is_direct(run)
        return run.source_computes.prep_snapshot_based_resize_at_source(
            run.context,
            run.memory.source_host,
            token=run.token(self.name),
            instance=run.source_instance(),
            block_devices=run.source_devices(),
            image_id=run.memory.image_id if not direct else None,
            disk_image_ids=run.memory.disk_image_ids if not direct else {},
            since=run.memory.received_round,
            is_direct=direct,
            shares=bool(run.memory.shared),
        )

    def _swap_attachment(self, run: Run, device: BlockDevice, volume_id: str) -> None:
        """Replaces the source's attachment of a volume by an unconnected one, which reserves the volume for a revert."""
        pair = run.memory.pair(volume_id)
        if pair.source is None:
            pair.source = reserve_once(run, volume_id, run.source_devices())
            run.save()
        if device.attachment_id is not None and device.attachment_id != pair.source:
            run.services.volumes.delete_attachment(run.context, device.attachment_id)

    def undo(self, run: Run) -> None:
        memory = run.memory
        for device, volume_id in volumes(run.source_devices()):
            pair = memory.pair(volume_id)
            if pair.source is not None and device.attachment_id != pair.source:
                # The record does not have the new reservation of the volume yet. Only one of the two attachments can be
                # connected.
                if device.attachment_id is not None:
                    run.services.volumes.delete_attachment(run.context, device.attachment_id)
                device.attachment_id, device.connection_info = pair.source, None
        if at_source(run).is_fenced:
            # The temporary images stay, because they may be the only copy of the disks.
            self._note_copies(run, self._complete_copies(run))
            restore_records_only(run)
            return
        with self.undo_event.during(run, memory.source_host), answering(run, at_source):
            guest = self._restore_guest(run)
        warn_of_unplugged(run, memory.source_host, guest)
        # In an earlier attempt the host may have been fenced.
        memory.source_is_dead = False
        with run.source_database.write() as connection:
            for device in guest.block_devices:
                block_devices.update_in(
                    connection,
                    device.uuid,
                    attachment_id=device.attachment_id,
                    connection_info=device.connection_info,
                )
            changes = {"power_state": guest.power_state, "network_info": guest.network_info}
            instances.update_in(connection, run.uuid, **changes, **guest.renamed)
        self._end_copies(run)

    def _restore_guest(self, run: Run) -> GuestOutcome:
        return run.source_computes.restore_at_source(
            run.context,
            run.memory.source_host,
            token=run.token(self.name),
            instance=run.source_instance(),
            block_devices=run.source_devices(),
            power_on=run.memory.was_running,
        )

    def _complete_copies(self, run: Run) -> list[str]:
        """Deletes the images without a whole disk, and returns the others."""
        return delete_incomplete_images(run)

    def _note_copies(self, run: Run, image_ids: list[str]) -> None:
        if image_ids:
            with run.source_database.write() as connection:
                known = instances.get_in(connection, run.uuid, with_tags=False).system_metadata
                kept = [*known.get(KEPT, "").split(), *image_ids]
                instances.update_in(connection, run.uuid, system_metadata=known | {KEPT: " ".join(dict.fromkeys(kept))})

    def _end_copies(self, run: Run) -> None:
        for image_id in image_ids_of(run):
            run.services.images.delete(run.context, image_id, called_as=SERVICE)
        # The source itself ends its offer when it restores the guest.
        run.memory.offer = None


def place_after_handing_over(run: Run) -> dict[str, Any]:
    """Returns the server's place in notifications while no host has its guest: inside a cell the target, else the source."""
    memory = run.memory
    return {} if memory.is_cross_cell else {"host": memory.target_host, "node": memory.destination.hypervisor_hostname}
