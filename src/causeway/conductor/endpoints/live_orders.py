"""Forces or aborts a running live migration, by urgent orders to its source's hypervisor."""

from __future__ import annotations

import logging
from collections.abc import Callable

from causeway import errors
from causeway.context import RequestContext
from causeway.model.instance import Instance
from causeway.model.operation_kinds import recipes_where
from causeway.model.operations import Operation
from causeway.model.outcomes import OperationToken
from causeway.model.sagas import ENDED
from causeway.rpc.compute import ComputeClient
from causeway.running.services import ConductorServices
from causeway.store import history
from causeway.store.api import journal, migrations
from causeway.store.cell import instances

LOG = logging.getLogger(__name__)

_BY_HYPERVISORS = recipes_where(lambda kind: kind.is_by_hypervisors)

Order = Callable[[ComputeClient, OperationToken, str], None]


class LiveEndpoint:
    """RPC: live_migration_abort, live_migration_force_complete. The API has found the migration, and recorded the action."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def live_migration_abort(self, context: RequestContext, *, instance_uuid: str, migration_uuid: str) -> None:
        """Has the source abort at once. Without this, it would learn from the journal that the migration is cancelled."""

        def abort(computes: ComputeClient, token: OperationToken, host: str) -> None:
            computes.live_migration_abort(context, host, token=token, instance_uuid=instance_uuid)

        self._order(context, instance_uuid, migration_uuid, "abort", abort)

    def live_migration_force_complete(
        self, context: RequestContext, *, instance_uuid: str, migration_uuid: str
    ) -> None:
        def force(computes: ComputeClient, token: OperationToken, host: str) -> None:
            computes.live_migration_force_complete(context, host, token=token, instance_uuid=instance_uuid)

        self._order(context, instance_uuid, migration_uuid, "force_complete", force)

    def _order(self, context: RequestContext, instance_uuid: str, migration_uuid: str, what: str, order: Order) -> None:
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        migration = migrations.get(services.api, migration_uuid)
        host = migration.source_compute or ""
        try:
            event = f"compute_live_migration_{what}"
            with history.event_beside_move(services.cells, cell.uuid, context, instance_uuid, event, host):
                self._notify(context, instance, what, "start", host)
                token = self._token(migration_uuid)
                if token is not None:
                    order(services.computes(migration.source_cell or cell.uuid), token, host)
                self._notify(context, instance, what, "end", host)
        except errors.CausewayError as failure:
            # The history shows that the order failed. The answer to the source's next report aborts the migration all the same.
            LOG.warning("%s of live migration %s: %s %s", what, migration_uuid, failure.message, failure.details)

    def _token(self, migration_uuid: str) -> OperationToken | None:
        """Returns the token of the running operation; None if it has ended."""
        found: list[Operation] = journal.of_migration(self._services.api, migration_uuid)
        for operation in found:
            if operation.recipe in _BY_HYPERVISORS and operation.state not in ENDED:
                return OperationToken(operation.id, migration_uuid, operation.epoch, "MigrateGuest")
        return None

    def _notify(self, context: RequestContext, instance: Instance, what: str, phase: str, host: str) -> None:
        self._services.notifier.instance_action(context, instance, f"live_migration_{what}", phase, host=host)
