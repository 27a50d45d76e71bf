"""Records reports of a cell's computes in the API database: the cells of hosts, and the progress of transfers.

A super conductor that is also the conductor of the cell calls this directly. The conductor of a single cell can't reach the API
database, so it calls a super conductor over the cell's queue (`causeway.rpc.super_conductor`).
"""

from __future__ import annotations

import logging
from typing import Protocol

from causeway import errors
from causeway.conductor.cells.transfers import Transfers
from causeway.context import RequestContext
from causeway.model.migration import EVACUATION
from causeway.model.missed import MissedOrder
from causeway.model.outcomes import MoveToken
from causeway.model.states import MigrationStatus, TaskState, VmState
from causeway.parts import cleanups
from causeway.parts.services import ConductorServices
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import cells as cell_records
from causeway.store.api import cleanups as cleanup_records
from causeway.store.api import migrations, ordered_moves
from causeway.store.cell import hosts, instances
from causeway.virt.live import LiveProgress

LOG = logging.getLogger(__name__)


class CloudRecords(Protocol):
    """The records of the API database, as the conductor of a cell uses them."""

    def map_host(self, context: RequestContext, *, host: str) -> None:
        """Records the cell of a host. Raises Conflict if another cell has a host of this name, and that is known at once."""

    def host_is_back(self, context: RequestContext, *, host: str) -> None:
        """Cleans a host that was unreachable, or has guests of servers that are on other hosts."""

    def missed_orders(self, context: RequestContext, *, host: str) -> list[MissedOrder]:
        """Returns the orders that a host missed while it was dead. It must carry them out before anything else."""

    def orders_carried_out(self, context: RequestContext, *, host: str, ids: list[str]) -> None:
        """Notes that a host has carried out these missed orders."""

    def guest_runs(self, context: RequestContext, *, instance_uuid: str) -> None:
        """Stops a guest that runs although its server is stopped, unless an operation on the server has begun."""

    def report_progress(self, context: RequestContext, *, token: MoveToken, bytes_done: int, bytes_total: int) -> None:
        """Records progress. Raises Cancelled, StateChanged or TakenOver if the transfer is no longer wanted."""

    def report_live_progress(self, context: RequestContext, *, token: MoveToken, progress: LiveProgress) -> str:
        """Records progress in the migration. Returns the server's uuid. Raises what `report_progress` raises."""

    def rate_of(self, context: RequestContext, *, token: MoveToken) -> float | None:
        """Returns how many bytes a second a transfer may use; None if there is no limit."""

    def check_order(self, context: RequestContext, *, token: MoveToken, forward: bool) -> None:
        """Raises TakenOver if an order of a move is too late."""


class CloudEndpoint:
    """`CloudRecords` of one cell on the API database; RPC on the cell's queue."""

    def __init__(
        self, services: ConductorServices, cell_uuid: str, conductor: ConductorClient, transfers: Transfers
    ) -> None:
        self._services = services
        self._cell_uuid = cell_uuid
        self._conductor = conductor
        self._transfers = transfers

    def map_host(self, context: RequestContext, *, host: str) -> None:  # noqa: ARG002
        cell_records.map_host(self._services.api, host, self._cell_uuid)

    def missed_orders(self, context: RequestContext, *, host: str) -> list[MissedOrder]:  # noqa: ARG002
        # The host waits for the answer, and must not wait for other hosts.
        return cleanups.due(self._services, host, may_ask=False)

    def orders_carried_out(self, context: RequestContext, *, host: str, ids: list[str]) -> None:  # noqa: ARG002
        cleanup_records.delete(self._services.api, host, ids)

    def host_is_back(self, context: RequestContext, *, host: str) -> None:
        if cleanup_records.any_on(self._services.api, host) or migrations.search(
            self._services.api,
            source_compute=host,
            migration_type=EVACUATION,
            statuses=[MigrationStatus.DONE],
            limit=1,
        ):
            self._conductor.clean_evacuated(context, host=host)

    def guest_runs(self, context: RequestContext, *, instance_uuid: str) -> None:
        """Stops the guest, as in the field: the user wants the server stopped, and the guest was not started through the API."""
        cell, database = self._services.cells.of_server(instance_uuid)
        if cell.uuid != self._cell_uuid:
            return
        try:
            instances.update(
                database,
                instance_uuid,
                expected_task={None},
                expected_vm={VmState.STOPPED},
                task_state=TaskState.POWERING_OFF,
            )
        except errors.StateChanged:
            return
        self._conductor.stop_instance(context, instance_uuid=instance_uuid)

    def report_progress(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: MoveToken,
        bytes_done: int,
        bytes_total: int,
    ) -> None:
        self._transfers.report(token, bytes_done, bytes_total)

    def report_live_progress(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: MoveToken,
        progress: LiveProgress,
    ) -> str:
        done = progress.memory_processed + progress.disk_processed
        counters = {f"{name}_bytes": value for name, value in progress.bytes_of().items()}
        uuid = self._transfers.report(token, done, progress.memory_total + progress.disk_total, counters)
        if progress.post_copy:
            ordered_moves.note_post_copy(self._services.api, token)
        return uuid

    def rate_of(self, context: RequestContext, *, token: MoveToken) -> float | None:  # noqa: ARG002
        return self._transfers.rate_of(token)

    def check_order(self, context: RequestContext, *, token: MoveToken, forward: bool) -> None:  # noqa: ARG002
        ordered_moves.check_order(self._services.api, token, forward=forward)


def map_hosts(services: ConductorServices, cell_uuid: str) -> None:
    """Maps hosts that were added to a cell while no super conductor listened. Raises DatabaseFailed."""
    known = cell_records.hosts(services.api)
    for node in hosts.list_nodes(services.cells.database(cell_uuid)):
        if known.get(node.host) == cell_uuid:
            continue
        try:
            cell_records.map_host(services.api, node.host, cell_uuid)
        except errors.Conflict as failure:
            LOG.error(
                "Host %s of cell %s can't be mapped, so it gets no servers: %s", node.host, cell_uuid, failure.message
            )
