"""The step of a live migration in which the guest goes. It passes the pivot when both hypervisors show that the guest arrived."""

from __future__ import annotations

import logging

from causeway import errors
from causeway.model.states import MigrationStatus
from causeway.model.things import Thing
from causeway.operations.live_owner import Decision, owner
from causeway.operations.live_run import Run, devices_there, failure_of, target_host, there
from causeway.parts import liveness
from causeway.rpc.compute_live import GuestPresence
from causeway.sagas.recipe import Step
from causeway.store.api import migrations
from causeway.virt.live import LiveOptions, Presence

LOG = logging.getLogger(__name__)

_STAYED = (Decision.STAYED, Decision.STOPPED, Decision.LOST)


class MigrateGuest(Step[Run]):
    """The source has the guest go. What became of it is asked of both hosts, whatever the source answered."""

    name = "MigrateGuest"
    reads = frozenset({"block_migration", "devices", "place", "source_host", "target"})
    writes = frozenset({"is_lost"})
    makes = frozenset({Thing.GUEST})

    def where(self, run: Run) -> str | None:
        return run.memory.source_host

    def do(self, run: Run) -> None:
        migrations.update(run.services.api, run.saga.migration_uuid, status=MigrationStatus.RUNNING)
        cause: errors.CausewayError | None = None
        # Another attempt, or one that was to be undone, may have brought it there.
        decision = decide(run) if self._was_begun(run) else None
        if decision is not Decision.ARRIVED:
            cause = self._send(run)
            decision = decide(run)
        if decision is Decision.ARRIVED:
            self._pivot(run)
            return
        cause = cause or errors.GuestFailed("the hypervisor says that it succeeded, and the guest is not there.")
        if decision in _STAYED:
            raise failure_of(cause, run.uuid) from cause
        raise _unclear(run, decision) from cause

    def _was_begun(self, run: Run) -> bool:
        return run.is_repeated or any(record.step == self.name for record in run.steps[:-1])

    def _send(self, run: Run) -> errors.CausewayError | None:
        """Why the guest did not go, by the word of whoever was asked: None, if it went."""
        memory = run.memory
        if memory.target is None:
            raise RuntimeError("the target was not made ready")
        try:
            outcome = run.computes.live_migration(
                run.context,
                memory.source_host,
                token=run.token(self.name),
                instance=there(run),
                block_devices=devices_there(run),
                target=memory.target,
                options=LiveOptions(block_migration=memory.block_migration),
            )
        except errors.StateChanged:
            raise
        except errors.CausewayError as failure:
            return failure
        run.transferred(outcome.bytes_done)
        return errors.from_wire(outcome.failure) if outcome.failure is not None else None

    def _pivot(self, run: Run) -> None:
        """Whoever has asked for the end of it meanwhile was too late."""
        run.saga.pivoted = True
        try:
            run.save()
        except BaseException:
            run.saga.pivoted = False
            raise

    def undo(self, run: Run) -> None:
        decision = decide(run)
        if decision is Decision.UNDER_WAY:
            run.computes.live_migration_abort(
                run.context, run.memory.source_host, token=run.token(self.name), instance_uuid=run.uuid
            )
            decision = decide(run)
        if decision in _STAYED:
            self._refuse_late_orders(run)
            decision = decide(run)
        if decision is Decision.ARRIVED:
            LOG.warning("Live migration %s can't be undone: the guest has arrived", run.saga.id)
            run.saga.pivoted = True
            raise errors.GuestArrived(f"Server {run.uuid} is at the target of its live migration: it stays there.")
        if decision not in _STAYED:
            raise _unclear(run, decision)
        run.memory.is_lost = decision is Decision.LOST

    def _refuse_late_orders(self, run: Run) -> None:
        source = run.memory.source_host
        if not liveness.of_host(run.services, run.database, source).is_fenced:
            run.computes.rollback_live_migration_at_source(
                run.context, source, token=run.token(self.name), instance_uuid=run.uuid
            )


def decide(run: Run) -> Decision:
    """Asks both hosts."""
    source = _presence(run, run.memory.source_host, if_dead=Presence.CRASHED)
    target = _presence(run, target_host(run), if_dead=Presence.ABSENT)
    decision = owner(
        source.presence if source is not None else None,
        target.presence if target is not None else None,
        has_job=source is not None and source.has_job,
    )
    LOG.info("Live migration %s: source %s, target %s: %s", run.saga.id, source, target, decision)
    return decision


def _presence(run: Run, host: str, *, if_dead: Presence) -> GuestPresence | None:
    """What a host shows; None if it can't be asked. ``if_dead``: what counts of one of which an operator said that it is dead."""
    life = liveness.of_host(run.services, run.database, host)
    if life.is_fenced:
        return GuestPresence(if_dead)
    if not life.is_up:
        return None
    try:
        return run.computes.guest_presence(run.context, host, instance_uuid=run.uuid)
    except errors.StateChanged:
        raise
    except errors.CausewayError as failure:
        LOG.warning("Host %s does not say what it has of server %s: %s", host, run.uuid, failure.message)
        return None


def _unclear(run: Run, decision: Decision) -> errors.CausewayError:
    down = [
        life.explained()
        for host in (run.memory.source_host, target_host(run))
        if (life := liveness.of_host(run.services, run.database, host)).is_down
    ]
    if down:
        return errors.HostDown("A host that the server needs is down. It is waited for.", details="; ".join(down))
    return errors.GuestUnclear(
        f"The live migration of server {run.uuid} has no end yet: who owns its guest can't be told.",
        details=f"source {run.memory.source_host}, target {target_host(run)}: {decision}",
    )
