"""Records reports of a cell's computes in the API database: the cells of hosts, and the progress of transfers.

A super conductor that is also the conductor of the cell calls this directly. The conductor of a single cell can't reach the API
database, so it calls a super conductor over the cell's queue (`causeway.rpc.super_conductor`).
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Protocol

from causeway import errors
from causeway.conductor.cells import volume_keys
from causeway.conductor.cells.transfers import Transfers
from causeway.context import RequestContext
from causeway.hosts import cleanups
from causeway.model.host import HostMapping
from causeway.model.migration import EVACUATION
from causeway.model.missed import MissedOrder
from causeway.model.outcomes import OperationToken
from causeway.model.states import MigrationStatus, TaskState, VmState
from causeway.model.volume_keys import VolumeKey
from causeway.rpc.conductor import ConductorClient
from causeway.running.services import ConductorServices
from causeway.store import own_nodes
from causeway.store.api import cells as cell_records
from causeway.store.api import cleanups as cleanup_records
from causeway.store.api import migrations, ordered_operations
from causeway.store.cell import hosts, instances
from causeway.virt.live_guest import LiveProgress

LOG = logging.getLogger(__name__)

# Hosts whose refused reports are logged: without signatures, a sender may call itself what it likes.
MOST_REFUSED = 10_000


class CloudRecords(Protocol):
    """The records of the API database, as the conductor of a cell uses them."""

    def map_host(self, context: RequestContext, *, host: str, node_uuid: str | None) -> None:
        """Records the cell and the node of a host.

        Raises Conflict if another host has this name or this node, and that is known at once.
        """

    def host_is_back(self, context: RequestContext, *, host: str) -> None:
        """Cleans a host that was unreachable, or has guests of servers that are on other hosts."""

    def missed_orders(self, context: RequestContext, *, host: str) -> list[MissedOrder]:
        """Returns the orders that a host missed while it was dead. It must carry them out before anything else."""

    def orders_carried_out(self, context: RequestContext, *, host: str, ids: list[str]) -> None:
        """Notes that a host has carried out these missed orders."""

    def guest_runs(self, context: RequestContext, *, instance_uuid: str) -> None:
        """Stops a guest that runs although its server is stopped, unless an operation on the server has begun."""

    def report_progress(
        self, context: RequestContext, *, token: OperationToken, bytes_done: int, bytes_total: int
    ) -> None:
        """Records progress. Raises Cancelled, StateChanged or TakenOver if the transfer is no longer wanted."""

    def report_live_progress(self, context: RequestContext, *, token: OperationToken, progress: LiveProgress) -> str:
        """Records progress in the migration. Returns the server's uuid. Raises what `report_progress` raises."""

    def rate_of(self, context: RequestContext, *, token: OperationToken) -> float | None:
        """Returns how many bytes a second a transfer may use; None if there is no limit."""

    def check_order(self, context: RequestContext, *, token: OperationToken, forward: bool) -> None:
        """Raises TakenOver if an order of a move is too late."""

    def volume_key(self, context: RequestContext, *, host: str, volume_id: str, public_key: str) -> VolumeKey:
        """Returns the key of an encrypted volume, sealed to ``public_key``."""

    def tpm_key(self, context: RequestContext, *, host: str, key_id: str, public_key: str) -> VolumeKey:
        """Returns the key of the state of a TPM, sealed to ``public_key``."""


class CloudEndpoint:
    """`CloudRecords` of one cell on the API database; RPC on the cell's queue."""

    def __init__(
        self, services: ConductorServices, cell_uuid: str, conductor: ConductorClient, transfers: Transfers
    ) -> None:
        self._services = services
        self._cell_uuid = cell_uuid
        self._conductor = conductor
        self._transfers = transfers
        # Hosts that were refused. It is logged once, because such a host reports again and again.
        self._refused: set[str] = set()

    def map_host(self, context: RequestContext, *, host: str, node_uuid: str | None = None) -> None:  # noqa: ARG002
        """``node_uuid``: None from a conductor of release 0.1.0."""
        known = cell_records.find_host(self._services.api, host)
        if known == HostMapping(host, self._cell_uuid, node_uuid):
            return
        first = own_nodes.first_hosts(self._services.cells, [node_uuid]) if node_uuid is not None else {}
        try:
            _map(self._services, self._cell_uuid, host, node_uuid, first)
        except errors.Conflict as failure:
            if host not in self._refused and len(self._refused) < MOST_REFUSED:
                self._refused.add(host)
                _log_refusal(self._services, self._cell_uuid, failure)
            raise

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
        """Stops the guest, as in Nova: the user wants the server stopped, and the guest was not started through the API."""
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
        token: OperationToken,
        bytes_done: int,
        bytes_total: int,
    ) -> None:
        self._transfers.report(token, bytes_done, bytes_total)

    def report_live_progress(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,
        progress: LiveProgress,
    ) -> str:
        done = progress.memory_processed + progress.disk_processed
        counters = {f"{name}_bytes": value for name, value in progress.bytes_of().items()}
        uuid = self._transfers.report(token, done, progress.memory_total + progress.disk_total, counters)
        if progress.post_copy:
            ordered_operations.note_post_copy(self._services.api, token)
        return uuid

    def rate_of(self, context: RequestContext, *, token: OperationToken) -> float | None:  # noqa: ARG002
        return self._transfers.rate_of(token)

    def check_order(self, context: RequestContext, *, token: OperationToken, forward: bool) -> None:  # noqa: ARG002
        ordered_operations.check_order(self._services.api, token, forward=forward)

    def volume_key(self, context: RequestContext, *, host: str, volume_id: str, public_key: str) -> VolumeKey:
        return volume_keys.answer(self._services, context, host, volume_id, public_key)

    def tpm_key(self, context: RequestContext, *, host: str, key_id: str, public_key: str) -> VolumeKey:
        return volume_keys.answer_for_tpm(self._services, context, host, key_id, public_key)


def map_hosts(services: ConductorServices, cell_uuid: str) -> None:
    """Maps hosts that were added to a cell while no super conductor listened, or before nodes were recorded.

    Raises DatabaseFailed.
    """
    known = {(each.host, each.cell_uuid, each.node_uuid) for each in cell_records.host_mappings(services.api)}
    nodes = hosts.list_nodes(services.cells.database(cell_uuid))
    new = [node for node in nodes if (node.host, cell_uuid, node.uuid) not in known]
    if not new:
        return
    first = own_nodes.first_hosts(services.cells, [node.uuid for node in new])
    # If release 0.1.0 recorded several nodes of a host, then the one that it reported last is its own.
    for node in sorted(new, key=lambda node: node.updated_at or datetime.min, reverse=True):
        try:
            _map(services, cell_uuid, node.host, node.uuid, first)
        except errors.Conflict as failure:
            _log_refusal(services, cell_uuid, failure)


def _log_refusal(services: ConductorServices, cell_uuid: str, failure: errors.Conflict) -> None:
    cells = {cell.uuid: cell.name for cell in services.cells.mappings()}
    LOG.error("A host of cell %s is not mapped: %s", cells.get(cell_uuid, cell_uuid), failure.message)


def _map(
    services: ConductorServices, cell_uuid: str, host: str, node_uuid: str | None, first: dict[str, tuple[str, str]]
) -> None:
    """Records a host and its node. ``first``: see `own_nodes.first_hosts`. Raises Conflict.

    Whoever reported a node first is its host: the mapping of that one may be of a release that recorded no nodes.
    """
    owner, its_cell = first.get(node_uuid or "", (host, cell_uuid))
    if (owner, its_cell) != (host, cell_uuid):
        raise cell_records.not_its_node(
            host, str(node_uuid), f"{owner} of cell {services.cells.mapping(its_cell).name}"
        )
    cell_records.map_host(services.api, host, cell_uuid, node_uuid)
