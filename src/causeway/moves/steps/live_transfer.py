"""The step of a live migration that transfers the guest. Inside a cell and between cells it is the same.

It passes the pivot when both hypervisors show that the guest arrived (`causeway.moves.live_owner`), whatever the source answered.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from causeway import errors
from causeway.hosts import cleanups
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.missed import Missed
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import MigrationStatus, PowerState
from causeway.model.things import Thing
from causeway.moves.live_owner import Decision, owner
from causeway.moves.move_run import Run
from causeway.moves.recipe import Step
from causeway.moves.sides import Side, life_of, source_of, target_of
from causeway.moves.steps.live_prepare import OF_THE_TARGET, at_target, devices_at_target, failure_of
from causeway.rpc.compute.live_calls import GuestPresence
from causeway.store.api import migrations
from causeway.virt.live_guest import LiveOptions, LiveProgress, Presence

LOG = logging.getLogger(__name__)

_STAYED = (Decision.STAYED, Decision.STOPPED, Decision.LOST)


@dataclass
class Transfer:
    """The source and target of a guest. ``instance``, ``devices``: as they will be at the target."""

    source: Side
    target: Side
    instance: Instance
    devices: list[BlockDevice]


class MigrateGuest(Step):
    """The pivot: has the source send the guest. Then asks both hosts for the outcome, whatever the source answered."""

    name = "MigrateGuest"
    reads = OF_THE_TARGET | {"block_migration", "live_devices", "live_target", "old_vm_state", "runs_in_error"}
    writes = frozenset({"guest", "is_lost"})
    makes = frozenset({Thing.GUEST})

    def where(self, run: Run) -> str | None:
        return run.memory.source_host

    def do(self, run: Run) -> None:
        api, migration_uuid = run.services.api, run.move.migration_uuid
        if migrations.get(api, migration_uuid).status is not MigrationStatus.RUNNING_POST_COPY:
            migrations.update(api, migration_uuid, status=MigrationStatus.RUNNING)
        transfer = _transfer_of(run)
        cause: errors.CausewayError | None = None
        # An earlier attempt may have brought the guest there, also one that is being undone.
        seen = look(run, transfer) if self._was_begun(run) else None
        if seen is None or seen.decision is not Decision.ARRIVED:
            cause = self._send(run, transfer)
            seen = look(run, transfer)
        decision = seen.decision
        if decision is Decision.ARRIVED:
            if seen.came is not None:
                self._count(run, seen.came)
            _note_guest(run, transfer)
            self._pivot(run)
            return
        cause = cause or errors.GuestFailed("the hypervisor reported success, but the guest is not there.")
        if decision in _STAYED:
            raise failure_of(cause, run.uuid) from cause
        raise _unclear(run, transfer, seen) from cause

    def _was_begun(self, run: Run) -> bool:
        return run.is_repeated or any(record.step == self.name for record in run.steps[:-1])

    def _send(self, run: Run, transfer: Transfer) -> errors.CausewayError | None:
        """Sends the guest. Returns the error of the call; None if it succeeded."""
        target = run.memory.live_target
        if target is None:
            raise RuntimeError("the target was not made ready")
        try:
            outcome = transfer.source.computes.live_migration(
                run.context,
                transfer.source.host,
                token=run.token(self.name),
                instance=transfer.instance,
                block_devices=transfer.devices,
                target=target,
                options=LiveOptions(block_migration=run.memory.block_migration),
            )
        except errors.StateChanged:
            raise
        except errors.CausewayError as failure:
            return failure
        run.transferred(outcome.bytes_done)
        return errors.from_wire(outcome.failure) if outcome.failure is not None else None

    def _count(self, run: Run, came: LiveProgress) -> None:
        """Records the bytes that the target counted. The source's last report may lack some, because it came before the end."""
        sent = came.memory_processed + came.disk_processed
        if run.step is not None and sent >= (run.step.bytes_done or 0):
            run.transferred(sent)
            counters: dict[str, Any] = {f"{name}_bytes": value for name, value in came.bytes_of().items()}
            # Written with the end of this step: a report of the source that arrives later is not recorded any more.
            run.with_next_save(lambda connection: migrations.update_in(connection, run.move.migration_uuid, **counters))

    def _pivot(self, run: Run) -> None:
        """Writes the pivot, also if the migration was cancelled meanwhile: that came too late."""
        run.move.pivoted = True
        try:
            run.save()
        except BaseException:
            run.move.pivoted = False
            raise

    def undo(self, run: Run) -> None:
        transfer = _transfer_of(run)
        source = transfer.source
        seen = look(run, transfer)
        if seen.decision is Decision.UNDER_WAY:
            source.computes.live_migration_abort(
                run.context, source.host, token=run.token(self.name), instance_uuid=run.uuid
            )
            seen = look(run, transfer)
        if seen.decision in _STAYED:
            self._end_departure(run, transfer)
            seen = look(run, transfer)
        if seen.decision is Decision.ARRIVED:
            LOG.warning("Live migration %s can't be undone: the guest has arrived", run.move.id)
            _note_guest(run, transfer)
            run.move.pivoted = True
            raise errors.GuestArrived(f"Server {run.uuid} is at the target of its live migration: it stays there.")
        if seen.decision not in _STAYED:
            raise _unclear(run, transfer, seen)
        run.memory.is_lost = seen.decision is Decision.LOST

    def _end_departure(self, run: Run, transfer: Transfer) -> None:
        """Has the source refuse late orders, and discard its note of the migration; a fenced one discards it later."""
        source, token = transfer.source, run.token(self.name)
        if life_of(run, source).is_fenced:
            what, about = Missed.DISCARD_COPIES, transfer.instance
            cleanups.note(run.services, source.host, source.cell_uuid, what, about, [], token)
            return
        source.computes.rollback_live_migration_at_source(run.context, source.host, token=token, instance_uuid=run.uuid)


def _transfer_of(run: Run) -> Transfer:
    instance, devices = at_target(run, run.source_instance()), devices_at_target(run, run.source_devices())
    return Transfer(source_of(run), target_of(run), instance, devices)


def _note_guest(run: Run, transfer: Transfer) -> None:
    """Writes what is known of the guest that has arrived into the memory, with the pivot."""
    power_state = PowerState.RUNNING if run.memory.was_running else PowerState.PAUSED
    run.memory.guest = GuestOutcome(power_state, transfer.instance.network_info, run.memory.live_devices)


@dataclass
class Seen:
    """What both hosts show; None for one that can't be asked. ``came``: as in the target's `GuestPresence`."""

    decision: Decision
    source: Presence | None
    target: Presence | None
    came: LiveProgress | None

    @property
    def is_stranded(self) -> bool:
        """Whether the guest stands still to be handed over, and the target has nothing that could take it."""
        nothing = (Presence.ABSENT, Presence.OFF, Presence.CRASHED)
        return self.source is Presence.PAUSED_FOR_MIGRATION and self.target in nothing


def look(run: Run, transfer: Transfer) -> Seen:
    """Asks both hosts what they have."""
    source = _presence(run, transfer.source, if_dead=Presence.CRASHED)
    target = _presence(run, transfer.target, if_dead=Presence.ABSENT)
    shown = source.presence if source is not None else None, target.presence if target is not None else None
    decision = owner(*shown, has_job=source is not None and source.has_job)
    LOG.info("Live migration %s: source %s, target %s: %s", run.move.id, source, target, decision)
    return Seen(decision, *shown, target.came if target is not None else None)


def _presence(run: Run, side: Side, *, if_dead: Presence) -> GuestPresence | None:
    """What a host shows; None if it can't be asked. ``if_dead``: the answer for a fenced host."""
    life = life_of(run, side)
    if life.is_fenced:
        return GuestPresence(if_dead)
    if not life.is_up:
        return None
    try:
        return side.computes.guest_presence(run.context, side.host, instance_uuid=run.uuid)
    except errors.StateChanged:
        raise
    except errors.CausewayError as failure:
        LOG.warning("Host %s can't report what it has of server %s: %s", side.host, run.uuid, failure.message)
        return None


def _unclear(run: Run, transfer: Transfer, seen: Seen) -> errors.CausewayError:
    down = [life.explained() for side in (transfer.source, transfer.target) if (life := life_of(run, side)).is_down]
    if down:
        return errors.HostDown(
            "A host that the server needs is down. The operation waits for it.", details="; ".join(down)
        )
    details = (
        f"source {transfer.source.host}: {seen.source}, target {transfer.target.host}: {seen.target}, {seen.decision}"
    )
    if seen.is_stranded:
        # The guest may have run at the target and ended there. Then it must not resume from its state here.
        details += (
            f". The guest stands still on {transfer.source.host} and resumes by itself if its hypervisor only waits for a dead"
            f" connection. If it does not, make sure that it runs nowhere else, and end it there (virsh destroy {run.uuid}):"
            " then the migration is rolled back, and a hard reboot boots the server from its disks"
        )
    return errors.GuestUnclear(
        f"The live migration of server {run.uuid} has no end yet: it is unknown which host owns its guest.",
        details=details,
    )
