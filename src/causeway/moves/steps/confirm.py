"""Confirm: deletes everything of the server at its source."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from causeway import errors
from causeway.model.instance import Instance
from causeway.model.missed import Missed
from causeway.model.states import MigrationStatus, PowerState, VmState
from causeway.moves import events
from causeway.moves.dead_hosts import answering, at_target, clean_source
from causeway.moves.events import EventNames
from causeway.moves.move_run import Run
from causeway.moves.recipe import Step
from causeway.moves.steps.check import is_deleting, require_whole_target_again
from causeway.store.cell import instances

# The fields of a server that describe a move, with their values after its end.
NOT_MOVED: dict[str, None] = dict.fromkeys(("old_flavor", "new_flavor", "old_vm_state", "migration_context"))


class ReleaseSource(Step):
    """The pivot: deletes the source's stashed disks, port bindings, volume attachments and allocations."""

    name = "ReleaseSource"
    reads = frozenset(
        {"attachments", "old_vm_state", "runs_in_error", "port_ids", "selection", "source_cell", "source_host"}
    )
    pivots = True

    def where(self, run: Run) -> str | None:
        return run.memory.source_host

    def do(self, run: Run) -> None:
        if run.is_repeated and not is_deleting(run):
            # Time has passed since `CheckTarget`, so the check is repeated.
            require_whole_target_again(run)
        if run.services.notifier.is_enabled:
            # If an earlier attempt was followed by the deletion of the source's records, it has sent this.
            with suppress(errors.ServerNotFound):
                run.services.notifier.instance_action(
                    run.context, run.source_instance(), "resize_confirm", "start", host=confirming_host(run)
                )
        release_source(run, events.RELEASE_SOURCE, lambda: delete_stash(run, self.name))


def release_source(run: Run, event: EventNames, clean: Callable[[], None]) -> None:
    """Has the source delete what it has of the server (``clean``), and releases everything else that the server has there."""
    memory = run.memory
    with event.during(run, memory.source_host):
        clean()
    for port_id in memory.port_ids if not memory.is_same_host else ():
        run.services.network.delete_binding(run.context, port_id, memory.source_host)
    for pair in memory.attachments:
        if pair.source is not None:
            run.services.volumes.delete_attachment(run.context, pair.source)
    run.services.placement.release_migration(run.move.migration_uuid)
    run.keep_records(run.memory.target_cell)


def delete_stash(run: Run, step: str) -> None:
    """Has the source delete the stashed disks. A source that is fenced gets the order when it is up again."""
    instance = run.target_instance()

    def send() -> None:
        run.source_computes.confirm_snapshot_based_resize_at_source(
            run.context, run.memory.source_host, token=run.token(step), instance=instance
        )

    clean_source(run, Missed.CONFIRM, instance, send)


class FinishConfirm(Step):
    """Sets the server to ACTIVE or SHUTOFF, like its guest, unless it is in ERROR; and sets the migration to confirmed."""

    name = "FinishConfirm"
    reads = frozenset({"events", "old_vm_state", "runs_in_error", "selection", "source_cell", "source_host"})
    # Written before the server's own state: a client that sees ACTIVE may start the next move.
    migration_status = MigrationStatus.CONFIRMED

    def do(self, run: Run) -> None:
        power_state = self._power_state(run, run.target_instance())
        by_guest = VmState.ACTIVE if power_state is PowerState.RUNNING else VmState.STOPPED
        vm_state = run.memory.kept_state or by_guest
        with run.target_database.write() as connection:
            run.write_history(connection)
            try:
                instances.swap_in(
                    connection,
                    run.uuid,
                    expected_vm={VmState.RESIZED},
                    vm_state=vm_state,
                    power_state=power_state,
                    **NOT_MOVED,
                )
            except errors.StateChanged:
                # An earlier attempt ended the task. Another request may have changed the server's states since.
                instances.update_in(connection, run.uuid, **NOT_MOVED)
        if run.services.notifier.is_enabled:
            confirmed = instances.get(run.target_database, run.uuid)
            run.services.notifier.instance_action(
                run.context, confirmed, "resize_confirm", "end", host=confirming_host(run)
            )

    def _power_state(self, run: Run, instance: Instance) -> PowerState:
        if is_deleting(run):
            return instance.power_state
        try:
            with answering(run, at_target):
                facts = run.target_computes.inspect_instance(
                    run.context, run.memory.target_host, instance_uuid=run.uuid
                )
        except errors.HostFenced:
            # The target died after `CheckTarget`. The server is confirmed all the same, as one of a dead host.
            return instance.power_state
        return facts.power_state if facts.power_state is not None else PowerState.SHUTDOWN


def confirming_host(run: Run) -> str:
    """Returns the publisher of the notifications, as in Nova: across cells the conductor, inside a cell the source."""
    return run.services.host if run.memory.is_cross_cell else run.memory.source_host
