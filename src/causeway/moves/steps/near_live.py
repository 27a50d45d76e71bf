"""Near-live migration: a server goes to another cell with its guest's memory, so that the guest does not boot.

The disks are copied while the guest runs. Then the guest stands still while its memory and the last changes travel. Before the
pivot the target loads the guest without resuming it; behind the pivot the guest resumes. So it never runs at two places, and an
undo loses nothing. There is no VERIFY_RESIZE. The source's copy is deleted after the target has shown that it has the guest.

A suspended guest stays suspended: its saved memory travels with its disks, and it resumes from that memory when its user asks.
"""

from __future__ import annotations

import dataclasses
import logging
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from causeway import errors
from causeway.model import operations
from causeway.model.instance import Instance, MigrationContext
from causeway.model.outcomes import GuestOutcome, SourceOutcome
from causeway.model.states import MigrationStatus, PowerState, TaskState, VmState
from causeway.moves import events, reach
from causeway.moves.dead_hosts import answering, at_target
from causeway.moves.hardware import refuse_devices_that_stay, require_attaching
from causeway.moves.move_run import Run
from causeway.moves.notices import notified
from causeway.moves.recipe import Step
from causeway.moves.steps.check import is_deleting, require_whole_target_again
from causeway.moves.steps.confirm import NOT_MOVED, ReleaseSource, delete_stash, release_source
from causeway.moves.steps.direct import is_direct, wipe_secret
from causeway.moves.steps.finish import FinishAtTarget
from causeway.moves.steps.hand_over import HandOver
from causeway.moves.steps.images import delete_images
from causeway.moves.steps.prepare import ReserveTarget
from causeway.moves.steps.records import ShowRecords, target_devices
from causeway.moves.steps.select import SelectDestination
from causeway.store.api import migrations
from causeway.store.cell import instances
from causeway.virt.driver import MEMORY

LOG = logging.getLogger(__name__)

_STATES = {PowerState.RUNNING: VmState.ACTIVE, PowerState.PAUSED: VmState.PAUSED}


class SelectOtherCell(SelectDestination):
    """Chooses a host of another cell and claims it."""

    name = "SelectOtherCell"
    reads = SelectDestination.reads | {"may_go_live"}
    event = "conductor_migrate_server"

    def _check(self, run: Run) -> None:
        refuse_devices_that_stay(run)

    def _choose_recipe(self, run: Run) -> None:
        run.move.recipe = self._next_recipe(run)

    def _next_recipe(self, run: Run) -> str:
        """Returns the recipe to continue with. Has both hosts try whether the guest can go live."""
        if not run.memory.may_go_live:
            return operations.NEAR_LIVE_MIGRATION
        why = reach.why_move_near_live(run, run.memory.target_host)
        if why is None:
            return operations.LIVE_MIGRATION
        if isinstance(why, errors.RpcTimeout) and not run.is_repeated:
            # The step is repeated, to have both hosts try again.
            raise why
        LOG.info("Server %s goes to another cell near-live: %s %s", run.uuid, why.message, why.details)
        return operations.NEAR_LIVE_MIGRATION


class PrepareOtherHost(ReserveTarget):
    """Makes inactive port bindings and empty volume attachments for the target, and checks that both hosts can do the move."""

    name = "PrepareOtherHost"
    event = events.PREPARE_TARGET_LIVE
    writes = ReserveTarget.writes | {"live_source"}
    migration_status: ClassVar[MigrationStatus | None] = MigrationStatus.PREPARING

    def do(self, run: Run) -> None:
        memory = run.memory
        with run.event("compute_check_can_live_migrate_source", memory.source_host):
            memory.live_source = run.source_computes.check_can_save_guest(
                run.context, memory.source_host, instance=run.source_instance()
            )
        super().do(run)

    def _notified(self, run: Run) -> AbstractContextManager[None]:
        return notified(run, "live_migration_pre", run.memory.target_host, run.source_instance())

    def _ask(self, run: Run, host: str) -> MigrationContext:
        if run.memory.live_source is None:
            raise RuntimeError("the source was not asked")
        require_attaching(run, host)
        run.target_computes.check_can_wake_guest(run.context, host, source=run.memory.live_source)
        return super()._ask(run, host)


class SaveGuest(HandOver):
    """Has the source pause the guest, and send its memory and the last changes of its disks into images, or offer them.

    Undo resumes the guest at its source, from the same memory and disks.
    """

    name = "SaveGuest"
    event = events.SAVE_GUEST
    undo_event = events.SAVE_GUEST_UNDONE
    notice = "live_migration_post"
    task_while_leaving = task_after_leaving = TaskState.MIGRATING
    migration_status = MigrationStatus.RUNNING

    def _power_state_after_leaving(self, run: Run) -> PowerState:
        return PowerState.SHUTDOWN if run.memory.is_suspended else PowerState.PAUSED

    def _hand_over(self, run: Run) -> SourceOutcome:
        direct = is_direct(run)
        images = dict(run.memory.disk_image_ids) if not direct else {}
        return run.source_computes.save_guest_at_source(
            run.context,
            run.memory.source_host,
            token=run.token(self.name),
            instance=run.source_instance(),
            block_devices=run.source_devices(),
            memory_image_id=images.pop(MEMORY) if not direct else None,
            image_id=run.memory.image_id if not direct else None,
            disk_image_ids=images,
            since=run.memory.received_round,
            shares=bool(run.memory.shared),
        )

    def _restore_guest(self, run: Run) -> GuestOutcome:
        return run.source_computes.wake_guest_at_source(
            run.context,
            run.memory.source_host,
            token=run.token(self.name),
            instance=run.source_instance(),
            block_devices=run.source_devices(),
            is_paused=not run.memory.was_running,
            is_suspended=run.memory.is_suspended,
        )


class WakeGuest(FinishAtTarget):
    """Has the target take over ports and volumes, and load the guest with its memory, standing still until `LetGuestGoOn`."""

    name = "WakeGuest"
    event = events.WAKE_GUEST
    notice = "live_migration_post_dest"
    task_while_arriving = TaskState.MIGRATING
    states_afterwards: ClassVar[dict[str, Any]] = {}
    migration_status = None

    def _make_guest(self, run: Run, instance: Instance) -> GuestOutcome:
        return run.target_computes.wake_guest_at_dest(
            run.context,
            run.memory.target_host,
            token=run.token(self.name),
            instance=instance,
            block_devices=target_devices(run, run.source_devices()),
            snapshot=run.memory.snapshot,
            disks=run.memory.disks,
            offer=run.memory.offer,
            is_suspended=run.memory.is_suspended,
            shared=run.memory.shared,
        )


class ShowAtTarget(ShowRecords[Run]):
    """Shows the target's records and hides the source's. Images are deleted later, because the guest stands still meanwhile."""

    name = "ShowAtTarget"
    reads = frozenset({"selection", "source_cell"})
    reads_if_any = frozenset({"offer"})

    def do(self, run: Run) -> None:
        super().do(run)
        wipe_secret(run)


class LetGuestGoOn(Step):
    """Has the target resume the guest, or only check it if its user has suspended it."""

    name = "LetGuestGoOn"
    reads = frozenset(
        {
            "carries_firmware",
            "disk_image_ids",
            "image_id",
            "image_round",
            "keeps_memory",
            "local_devices",
            "offer",
            "old_vm_state",
            "runs_in_error",
            "selection",
            "shared",
            "source_cell",
        }
    )
    writes = frozenset({"guest"})
    has_guest_off = True

    def where(self, run: Run) -> str | None:
        return run.memory.target_host

    def do(self, run: Run) -> None:
        memory = run.memory
        with run.event("compute_post_live_migration_at_destination", memory.target_host), answering(run, at_target):
            facts = run.target_computes.let_guest_go_on(
                run.context,
                memory.target_host,
                token=run.token(self.name),
                instance=run.target_instance(),
                block_devices=run.target_devices(),
                is_paused=not memory.was_running,
                is_suspended=memory.is_suspended,
            )
        power_state = facts.power_state if facts.power_state is not None else PowerState.SHUTDOWN
        if memory.guest is not None:
            memory.guest = dataclasses.replace(memory.guest, power_state=power_state)
        instances.update(run.target_database, run.uuid, power_state=power_state)
        delete_images(run)


class LeaveSourceCell(Step):
    """Deletes the source's disks, saved memory, port bindings, volume attachments and allocations."""

    name = "LeaveSourceCell"
    reads = ReleaseSource.reads

    def where(self, run: Run) -> str | None:
        return run.memory.source_host

    def do(self, run: Run) -> None:
        if not is_deleting(run):
            require_whole_target_again(run)
        release_source(run, events.RELEASE_SOURCE_LIVE, lambda: delete_stash(run, self.name))


class EndNearLiveMigration(Step):
    """Sets the server's state to that of its guest, and ends its task."""

    name = "EndNearLiveMigration"
    reads = frozenset({"events", "guest", "keeps_memory", "old_vm_state", "selection", "source_cell"})

    def do(self, run: Run) -> None:
        # The migration first: a client that sees the server without a task may start the next move.
        migrations.update(run.services.api, run.move.migration_uuid, status=MigrationStatus.COMPLETED)
        guest = run.memory.guest
        by_guest = _STATES.get(guest.power_state, VmState.STOPPED) if guest is not None else VmState.STOPPED
        vm_state = run.memory.kept_state or by_guest
        with run.target_database.write() as connection:
            run.write_history(connection)
            ended = instances.end_task_in(
                connection, run.uuid, run.memory.tasks, vm_state=vm_state, progress=0, **NOT_MOVED
            )
            if not ended:
                # An earlier attempt ended the task, or an administrator has reset the server's states.
                instances.update_in(connection, run.uuid, **NOT_MOVED)
