"""The step that chooses the target: in one call the scheduler picks a host and claims it in Placement."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import sqlalchemy as sa

from causeway.clients.port_owners import PortOwner
from causeway.hardware.port_devices import requests_of
from causeway.model.things import Thing
from causeway.moves.destination import disk_gb_in_storage, request_spec
from causeway.moves.move_run import Run
from causeway.moves.port_resources import ask_for_ports
from causeway.moves.recipe import Step
from causeway.moves.steps.local_disks import check_no_shrink
from causeway.scheduler.request import MoveClaim
from causeway.store.api import migrations


class SelectDestination(Step):
    """Has the scheduler choose and claim a host. The migration gets the source's allocations, and the server the target's."""

    name = "SelectDestination"
    reads = frozenset(
        {
            "cross_cell_allowed",
            "has_port_devices",
            "has_ports",
            "hosts_without_network",
            "keeps_memory",
            "migrates_to_same_host",
            "migration_type",
            "new_flavor",
            "old_flavor",
            "old_vm_state",
            "runs_in_error",
            "requested_host",
            "source_cell",
            "source_host",
            "source_node",
            "source_storage",
            "source_zone",
        }
    )
    writes = frozenset({"alternates", "group", "port_allocations", "port_requests", "selection"})
    makes = frozenset({Thing.ALLOCATION})
    event: ClassVar[str] = "cold_migrate"

    def do(self, run: Run) -> None:
        memory = run.memory
        with run.event(self.event):
            self._check(run)
            if run.is_repeated:
                # The answer to an earlier call may have been lost. Its claim would exclude the same host, so it is released.
                self.undo(run)
            spec = request_spec(
                run.services.api,
                run.services.conf,
                run.uuid,
                memory,
                lambda: _has_volumes(run),
                requests_of(run.source_instance()) if memory.has_port_devices else [],
            )
            memory.group = spec.server_group
            if memory.has_ports:
                ask_for_ports(
                    spec, memory, run.services.network.ports_of_server(run.context, PortOwner.of(run.source_instance()))
                )
            spec.order = run.order()
            results = run.services.scheduler.select_destinations(
                run.context,
                spec=spec,
                instance_uuids=[run.uuid],
                alternates=memory.requested_host is None,
                move=MoveClaim(run.move.migration_uuid, memory.source_node),
            )
        result = results[0]
        memory.selection, memory.alternates = result.selected, result.alternates
        run.move.explanation = msgspec.to_builtins(result.explanation)
        self._choose_recipe(run)
        run.keep_records(memory.source_cell)
        run.with_next_save(lambda connection: note_destination(connection, run))

    def _check(self, run: Run) -> None:
        """Raises OperationFailed or NoValidHost if the move can't succeed on any host."""
        check_no_shrink(run)

    def _choose_recipe(self, run: Run) -> None:
        """Chooses the recipe to continue with: a resize keeps its own."""

    def undo(self, run: Run) -> None:
        run.services.placement.return_allocations(
            run.uuid,
            run.move.migration_uuid,
            source_provider=run.memory.source_node,
            disk_gb=disk_gb_in_storage(run.services.api, run.uuid, run.memory),
        )


def note_destination(connection: sa.Connection, run: Run) -> None:
    """Writes the chosen host to the migration record."""
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


def _has_volumes(run: Run) -> bool:
    return any(device.is_volume for device in run.source_devices())
