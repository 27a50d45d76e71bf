"""Deferred deletes (`[DEFAULT] reclaim_instance_interval`): the guest is off, everything else stays, and can be restored.

The server's system metadata says since when it is soft-deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from causeway import errors
from causeway.model import operations, rescue
from causeway.model.outcomes import GuestOutcome
from causeway.model.soft_deleted import SINCE
from causeway.model.states import PowerState, TaskState, VmState
from causeway.model.things import Thing
from causeway.running.operation_run import OperationRun
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import endings, guests
from causeway.store.database import utcnow

DELETING, RESTORING = {TaskState.SOFT_DELETING}, {TaskState.RESTORING}


@dataclass
class SoftDeleteMemory:
    """``was_running``: before the delete."""

    was_running: Given[bool] = False


@dataclass
class RestoreMemory:
    """``guest``: once it runs."""

    guest: GuestOutcome | None = None


SoftDelete: TypeAlias = OperationRun[SoftDeleteMemory]
Restore: TypeAlias = OperationRun[RestoreMemory]


class StopGuest(Step[SoftDelete]):
    """Powers the guest off. Its disks stay."""

    name = "StopGuest"
    reads = frozenset({"was_running"})

    def where(self, run: SoftDelete) -> str | None:
        return run.instance().host

    def do(self, run: SoftDelete) -> None:
        instance = run.instance()
        host = instance.host or ""
        if not run.is_repeated:
            run.services.notifier.instance_action(run.context, instance, "soft_delete", "start", host=host)
        with run.event(run.kind.event, host):
            guests.require_host(run, host)
            run.computes.store_disk(run.context, host, token=run.token(self.name), instance=instance, image_id=None)

    def undo(self, run: SoftDelete) -> None:
        instance = run.instance()
        if run.memory.was_running:
            run.computes.restore_guest(
                run.context,
                instance.host or "",
                token=run.token(self.name),
                instance=instance,
                block_devices=run.devices(),
            )


class MarkSoftDeleted(Step[SoftDelete]):
    """Sets the server to SOFT_DELETED. It is deleted after ``reclaim_instance_interval``."""

    name = "MarkSoftDeleted"
    pivots = True

    def do(self, run: SoftDelete) -> None:
        instance = run.instance()
        known = instance.system_metadata | {SINCE: utcnow().isoformat()}
        if endings.ended(
            run, DELETING, vm_state=VmState.SOFT_DELETED, power_state=PowerState.SHUTDOWN, system_metadata=known
        ):
            instance.vm_state, instance.task_state = VmState.SOFT_DELETED, None
            host = instance.host or ""
            run.services.notifier.instance_action(run.context, instance, "soft_delete", "end", host=host)


class RestoreGuest(Step[Restore]):
    """Starts the guest."""

    name = "RestoreGuest"
    writes = frozenset({"guest"})
    makes = frozenset({Thing.GUEST})

    def where(self, run: Restore) -> str | None:
        return run.instance().host

    def do(self, run: Restore) -> None:
        instance = run.instance()
        host = instance.host or ""
        if not run.is_repeated:
            run.services.notifier.instance_action(run.context, instance, "restore", "start", host=host)
        with run.event(run.kind.event, host):
            guests.require_host(run, host)
            run.memory.guest = run.computes.start_guest(
                run.context, host, token=run.token(self.name), instance=instance, block_devices=run.devices()
            )

    def undo(self, run: Restore) -> None:
        instance = run.instance()
        run.computes.stop_guest(run.context, instance.host or "", token=run.token(self.name), instance=instance)


class MarkRestored(Step[Restore]):
    """Sets the server to ACTIVE."""

    name = "MarkRestored"
    reads = frozenset({"guest"})
    pivots = True

    def do(self, run: Restore) -> None:
        guest, there = run.memory.guest, run.instance()
        if guest is None:
            raise RuntimeError("the guest does not run")
        # A server that was rescued has booted from its own disk.
        known = {name: value for name, value in rescue.without(there.system_metadata).items() if name != SINCE}
        if endings.came_up(
            run,
            RESTORING,
            guest,
            there,
            vm_state=VmState.ACTIVE,
            system_metadata=known,
        ):
            run.services.notifier.instance_action(run.context, there, "restore", "end", host=there.host or "")


def _not_deleted(run: SoftDelete, cause: errors.CausewayError) -> None:
    """Restores the server's state. A server that was paused or suspended is off, if its guest was powered off."""
    stays = run.memory.was_running or not run.steps or run.instance().vm_state is VmState.STOPPED
    changes = {} if stays else {"vm_state": VmState.STOPPED, "power_state": PowerState.SHUTDOWN}
    endings.failed(run, cause, DELETING, **changes)


def _not_restored(run: Restore, cause: errors.CausewayError) -> None:
    """The server stays soft-deleted."""
    endings.failed(run, cause, RESTORING)


SOFT_DELETE = Recipe(
    operations.SOFT_DELETE,
    (StopGuest(), MarkSoftDeleted()),
    pivot="MarkSoftDeleted",
    rolled_back=_not_deleted,
    memory=SoftDeleteMemory,
)

RESTORE = Recipe(
    operations.RESTORE,
    (RestoreGuest(), MarkRestored()),
    pivot="MarkRestored",
    rolled_back=_not_restored,
    memory=RestoreMemory,
)
