"""Cleans a host that is up again after servers were evacuated from it (`causeway.moves.without_guest.evacuate`).

The servers may have moved on meanwhile, also to other cells, or were deleted. A guest that still runs on the host is stopped at
once. It is destroyed, with its disks, after the host where the server is now has shown its guest and disks.
"""

from __future__ import annotations

import logging

from causeway import errors
from causeway.context import RequestContext, admin_context
from causeway.hosts import cleanups, whereabouts
from causeway.model import operations
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.migration import EVACUATION, Migration
from causeway.model.missed import Missed, MissedOrder
from causeway.model.states import MigrationStatus
from causeway.running.services import ConductorServices
from causeway.store.api import journal, migrations

LOG = logging.getLogger(__name__)


class EvacuatedEndpoint:
    """RPC: clean_evacuated."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def clean_evacuated(self, context: RequestContext, *, host: str) -> None:  # noqa: ARG002
        services, ours = self._services, admin_context()
        try:
            cleanups.clean(services, ours, host)
        except errors.CausewayError as failure:
            LOG.warning(
                "Evacuated servers could not be cleaned from host %s: %s %s", host, failure.message, failure.details
            )
        left = migrations.search(
            services.api, source_compute=host, migration_type=EVACUATION, statuses=[MigrationStatus.DONE]
        )
        for migration in left:
            try:
                self._clean(ours, host, migration)
            except errors.CausewayError as failure:
                LOG.warning(
                    "Server %s could not be cleaned from host %s: %s %s",
                    migration.instance_uuid,
                    host,
                    failure.message,
                    failure.details,
                )

    def _clean(self, context: RequestContext, host: str, migration: Migration) -> None:
        uuid = migration.instance_uuid
        servers = whereabouts.look_for(self._services, {uuid})
        living = servers.living.get(uuid)
        if living is None or living.host != host:
            servers.require_elsewhere(uuid, host, migration.source_cell)
            self._refuse_if_coming_back(host, migration, living)
            record = living or _stand_in(migration)
            self._order(context, host, migration, MissedOrder.stop(record))
            if uuid in servers.unclear:
                raise errors.DatabaseFailed("Where the server is now is unknown: its cell does not answer.")
            if living is not None and living.host is not None:
                whereabouts.require_whole(self._services, context, living, servers.cells[uuid] or "")
            LOG.warning(
                "Host %s is up again: the guest and disks of the evacuated server %s are deleted from it", host, uuid
            )
            # The server's ports and volumes are in use on another host, so only the guest and its disks are destroyed.
            self._order(context, host, migration, MissedOrder(f"destroy {uuid}", Missed.DESTROY, record))
        self._services.placement.delete_allocations(migration.uuid)
        migrations.update(self._services.api, migration.uuid, status=MigrationStatus.COMPLETED)

    def _refuse_if_coming_back(self, host: str, migration: Migration, living: Instance | None) -> None:
        """Raises InvalidState if the server may be coming back to the host."""
        if whereabouts.migrates(self._services, migration.instance_uuid, host) or (
            living is not None and self._may_build(migration, living)
        ):
            raise errors.InvalidState("The server may be coming back to the host.")

    def _may_build(self, migration: Migration, living: Instance) -> bool:
        """Whether an operation under way may make the server's guest on any host: a later evacuation, or an unshelve."""
        active = journal.active_of_server(self._services.api, living.uuid)
        if active is None or active.migration_uuid == migration.uuid:
            # None, or this evacuation, which repeats its end.
            return False
        return living.host is None or active.recipe == operations.EVACUATE

    def _order(self, context: RequestContext, host: str, migration: Migration, order: MissedOrder) -> None:
        """Has the host carry out an order. Raises OperationFailed if it failed, for a reason that the host logged."""
        computes = self._services.computes(migration.source_cell or "")
        if computes.carry_out_missed(context, host, orders=[order]) != [order.id]:
            raise errors.OperationFailed(f"The host could not {order.id}: see its log.")


def _stand_in(migration: Migration) -> Instance:
    """For orders about a server whose record is gone. Hosts find its guest and disks by its uuid."""
    return Instance(
        migration.instance_uuid,
        project_id=migration.project_id or "",
        user_id=migration.user_id or "",
        display_name="",
        flavor=Flavor("", "", vcpus=0, memory_mb=0, root_gb=0),
    )
