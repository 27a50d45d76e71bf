"""Cleans a host that is up again after servers were evacuated from it (`causeway.operations.evacuate`)."""

from __future__ import annotations

import dataclasses
import logging

from causeway import errors
from causeway.context import RequestContext, admin_context
from causeway.model.migration import EVACUATION, Migration
from causeway.model.states import MigrationStatus, PowerState
from causeway.parts import cleanups
from causeway.parts.services import ConductorServices
from causeway.store.api import migrations
from causeway.store.cell import instances

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
        for migration in migrations.search(
            services.api, source_compute=host, migration_type=EVACUATION, statuses=[MigrationStatus.DONE]
        ):
            try:
                self._clean(ours, host, migration)
            except errors.CausewayError as failure:
                LOG.warning(
                    "Server %s could not be cleaned from host %s: %s", migration.instance_uuid, host, failure.message
                )

    def _clean(self, context: RequestContext, host: str, migration: Migration) -> None:
        services, uuid = self._services, migration.instance_uuid
        database = services.cells.database(migration.source_cell or "")
        instance = instances.find(database, uuid, deleted=True)
        if instance is not None and (instance.host != host or instance.deleted):
            computes = services.computes(migration.source_cell or "")
            if computes.inspect_instance(context, host, instance_uuid=uuid).power_state is PowerState.RUNNING:
                # The guest is stopped before anything else, because it may run on its new host too.
                computes.power_off_instance(context, host, instance=instance)
            if instance.host is not None and not instance.deleted:
                there = computes.inspect_instance(context, instance.host, instance_uuid=uuid)
                if there.power_state is None:
                    raise errors.CopyNotUsable(
                        f"Server {uuid} is not on the host to which it was evacuated.",
                        details=f"host {instance.host}: {there}",
                    )
            LOG.warning(
                "Host %s is up again: the guest and disks of the evacuated server %s are deleted from it", host, uuid
            )
            # The server's ports and volumes are in use on another host, so only the guest and its disks are destroyed.
            computes.destroy_instance(
                context, host, instance=dataclasses.replace(instance, network_info=[]), block_devices=[]
            )
        services.placement.delete_allocations(migration.uuid)
        migrations.update(services.api, migration.uuid, status=MigrationStatus.COMPLETED)
