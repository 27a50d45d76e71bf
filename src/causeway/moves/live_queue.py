"""Limits how many guests leave a host at the same time. The others wait for their turn, inside a cell and across cells."""

from __future__ import annotations

from causeway import errors
from causeway.model.operation_kinds import recipes_where
from causeway.moves.move_run import Run
from causeway.moves.recipe import Step
from causeway.requests.of_servers import context_of, notify_conductor
from causeway.running.patience import While
from causeway.store.api import journal, live_turns, migrations

_WAIT_HERE = recipes_where(lambda kind: kind.is_by_hypervisors)


class AwaitTurn(Step):
    """Waits until the source may send another guest. Meanwhile the saga is released."""

    name = "AwaitTurn"
    reads = frozenset({"source_host"})

    def retried_while(self, run: Run) -> While:  # noqa: ARG002
        return While.OTHERS_HAVE_THEIR_TURN

    def do(self, run: Run) -> None:
        limit: int = run.services.conf.max_concurrent_live_migrations
        migration = migrations.get(run.services.api, run.move.migration_uuid)
        if not live_turns.take(run.services.api, migration, limit):
            raise errors.OperationUnderWay(
                f"The live migration of server {run.uuid} waits until others have left its host.",
                details=f"host {run.memory.source_host}, max_concurrent_live_migrations {limit}",
            )


def run_queued(run: Run) -> None:
    """Starts the next live migration in the queue of the source, which has room for it."""
    api = run.services.api
    for migration in live_turns.queued(api, run.memory.source_host):
        for operation in journal.of_migration(api, migration.uuid):
            if operation.recipe in _WAIT_HERE and operation.owner is None:
                notify_conductor(run.services, context_of(operation), operation)
                return
