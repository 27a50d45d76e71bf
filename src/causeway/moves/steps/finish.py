"""Makes the guest at the target."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from causeway import errors
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import MigrationStatus, TaskState, VmState
from causeway.model.things import Thing
from causeway.moves import dead_hosts, events
from causeway.moves.events import EventNames
from causeway.moves.move_run import Run
from causeway.moves.notices import notified
from causeway.moves.port_resources import at_target
from causeway.moves.recipe import Step
from causeway.moves.steps.check import require_way_back
from causeway.moves.steps.direct import send_offered
from causeway.moves.steps.hand_over import place_after_handing_over
from causeway.moves.steps.records import target_devices
from causeway.moves.steps.reservations import volumes
from causeway.servers.unplugged import warn_of_unplugged


class FinishAtTarget(Step):
    """Has the target take over ports and volumes, and make the guest with the new flavor from the disks of the source."""

    name = "FinishAtTarget"
    reads = frozenset(
        {
            "attachments",
            "carries_firmware",
            "keeps_memory",
            "local_devices",
            "new_flavor",
            "old_flavor",
            "old_vm_state",
            "runs_in_error",
            "port_requests",
            "selection",
            "shared",
            "source_cell",
            "source_host",
            "volume_backed",
            "warm",
        }
    )
    writes = frozenset({"disk_image_ids", "disks", "guest", "image_id", "image_round", "offer", "snapshot"})
    makes = frozenset({Thing.DISKS, Thing.GUEST, Thing.IMAGE})
    event: ClassVar[EventNames] = events.FINISH_AT_TARGET
    notice: ClassVar[str] = "resize_finish"
    #: for notifications: the server's task during the step, and its states after the step
    task_while_arriving: ClassVar[TaskState] = TaskState.RESIZE_FINISH
    states_afterwards: ClassVar[dict[str, Any]] = {"vm_state": VmState.RESIZED, "task_state": None}
    migration_status: ClassVar[MigrationStatus | None] = MigrationStatus.POST_MIGRATING
    has_guest_off = True

    def where(self, run: Run) -> str | None:
        return run.memory.target_host

    def do(self, run: Run) -> None:
        memory = run.memory
        instance = dataclasses.replace(
            run.source_instance(),
            flavor=memory.new_flavor,
            task_state=self.task_while_arriving,
            **place_after_handing_over(run),
        )
        with (
            notified(
                run,
                self.notice,
                memory.target_host,
                instance,
                then={
                    **self.states_afterwards,
                    "host": memory.target_host,
                    "node": memory.destination.hypervisor_hostname,
                },
                block_devices=run.source_devices(),
            ),
            self.event.during(run, memory.target_host),
            dead_hosts.answering(run, dead_hosts.at_target),
        ):
            memory.guest = self._make_from_disks(
                run,
                dataclasses.replace(
                    run.source_instance(),
                    flavor=memory.new_flavor,
                    host=memory.target_host,
                    availability_zone=memory.destination.availability_zone,
                    network_info=at_target(memory, run.source_instance().network_info),
                ),
            )
        run.transferred(memory.guest.bytes_done)
        warn_of_unplugged(run, memory.target_host, memory.guest)

    def _make_from_disks(self, run: Run, instance: Instance) -> GuestOutcome:
        """Has the target make the guest from disks that it fetches from the source or downloads as images."""
        try:
            return self._make_guest(run, instance)
        except errors.DiskTransferBroken as failure:
            if run.memory.offer is None or not run.memory.is_cross_cell:
                raise
            send_offered(run, self.name, failure)
        return self._make_guest(run, instance)

    def _make_guest(self, run: Run, instance: Instance) -> GuestOutcome:
        return run.target_computes.finish_snapshot_based_resize_at_dest(
            run.context,
            run.memory.target_host,
            token=run.token(self.name),
            instance=instance,
            block_devices=target_devices(run, run.source_devices()),
            snapshot=run.memory.snapshot,
            power_on=run.memory.was_running,
            disks=run.memory.disks,
            offer=run.memory.offer,
            same_host=run.memory.is_same_host,
            shared=run.memory.shared,
        )

    def _destroy_at_target(self, run: Run) -> None:
        run.target_computes.drop_move_at_dest(
            run.context,
            run.memory.target_host,
            token=run.token(self.name),
            instance=run.source_instance(),
            block_devices=target_devices(run, run.source_devices()),
            same_host=run.memory.is_same_host,
        )

    def undo(self, run: Run) -> None:
        memory = run.memory
        require_way_back(run)
        # The target's guest must be destroyed before the source restores its own.
        devices = target_devices(run, run.source_devices())
        dead_hosts.clean_target(
            run, dead_hosts.undo_order(run), run.source_instance(), devices, lambda: self._destroy_at_target(run)
        )
        for _device, volume_id in volumes(run.source_devices()):
            pair = memory.pair(volume_id)
            if pair.target is not None:
                run.services.volumes.delete_attachment(run.context, pair.target)
                pair.target = None
        memory.guest = None
