"""Where to: the scheduler chooses a host, and Placement is told in the same call."""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from causeway import errors
from causeway.moves.recipe import Step
from causeway.moves.run import Run
from causeway.scheduler.request import Destination, MoveClaim, RequestSpec
from causeway.store.api import journal, mappings, migrations


class SelectDestination(Step):
    """Chooses a host and claims it: the source's allocations go to the migration, the target's to the server."""

    name = "SelectDestination"

    def do(self, run: Run) -> None:
        memory = run.memory
        with run.event("cold_migrate"):
            results = run.services.scheduler.select_destinations(
                run.context,
                spec=_spec(run),
                instance_uuids=[run.uuid],
                alternates=memory.requested_host is None,
                move=MoveClaim(run.move.migration_uuid, memory.source_node),
            )
        result = results[0]
        memory.selection, memory.alternates = result.selected, result.alternates
        explanation = msgspec.to_builtins(result.explanation)
        run.with_next_save(lambda connection: journal.save_explanation_in(connection, run.move.id, explanation))
        run.move.recipe = "cross_cell_resize" if memory.is_cross_cell else "same_cell_resize"
        run.with_next_save(lambda connection: note_destination(connection, run))

    def undo(self, run: Run) -> None:
        run.services.placement.give_back(run.uuid, run.move.migration_uuid)


def note_destination(connection: sa.Connection, run: Run) -> None:
    """Writes the present choice to the migration."""
    chosen = run.memory.destination
    migrations.update_in(
        connection,
        run.move.migration_uuid,
        dest_compute=chosen.host,
        dest_node=chosen.hypervisor_hostname,
        dest_host=chosen.host_ip,
        dest_cell=chosen.cell_uuid,
        cross_cell_move=run.memory.is_cross_cell,
    )


def _spec(run: Run) -> RequestSpec:
    """The server's request spec for this move: the new flavor, and where it may go."""
    memory = run.memory
    spec = RequestSpec.from_persisted(mappings.get_spec(run.services.api, run.uuid))
    spec.flavor = memory.new_flavor
    cell: str | None = memory.source_cell
    if memory.requested_host is not None and memory.cross_cell_allowed:
        # The host that was asked for may be in any cell.
        cell = None
    spec.requested_destination = Destination(
        host=memory.requested_host, cell=cell, allow_cross_cell_move=memory.cross_cell_allowed
    )
    same_host_allowed = run.services.conf.allow_resize_to_same_host and memory.migration_type == "resize"
    if not same_host_allowed:
        if memory.requested_host == memory.source_host:
            raise errors.NoValidHost("The server is on the requested host already.")
        spec.ignore_hosts = [memory.source_host]
    return spec
