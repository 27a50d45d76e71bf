"""Evacuating servers from hosts that are down, and cleaning up when such a host comes back.

The migration (type ``evacuation``) holds what the server has at its dead host, as in a move. ``accepted``: under way.
``done``: the server is at its new host, and the old one may still have a guest and disks of it. When that host reports again
they are removed, the allocation goes, and the migration is ``completed``.
"""

from __future__ import annotations

import dataclasses
import logging
import uuid as uuids

from causeway import errors
from causeway.context import RequestContext, admin_context
from causeway.model.instance import Instance, MigrationContext
from causeway.model.migration import Migration
from causeway.model.states import MigrationStatus, PowerState, TaskState, VmState
from causeway.parts import attachments, devices, history, leftovers, placing
from causeway.parts.services import ConductorServices
from causeway.scheduler.request import MoveClaim
from causeway.store.api import migrations
from causeway.store.cell import block_devices, hosts, instances
from causeway.store.database import Database, utcnow

LOG = logging.getLogger(__name__)

EVACUATION = "evacuation"
REBUILDING = {TaskState.REBUILDING}


def settle(services: ConductorServices) -> None:
    """Ends evacuations that nobody works on any more. Only for when nobody works on anything."""
    for migration in migrations.search(services.api, migration_type=EVACUATION, statuses=[MigrationStatus.ACCEPTED]):
        database = services.cells.database(migration.source_cell or "")
        instance = instances.find(database, migration.instance_uuid)
        if instance is not None and instance.host == migration.dest_compute:
            migrations.update(services.api, migration.uuid, status=MigrationStatus.DONE)
            continue
        services.placement.give_back(migration.instance_uuid, migration.uuid)
        migrations.update(services.api, migration.uuid, status=MigrationStatus.ERROR)
        if instance is not None:
            failure = errors.OperationFailed(
                "The service was stopped while it evacuated this server. Evacuate it again."
            )
            history.fail(
                database,
                instance.uuid,
                failure,
                instance.host,
                vm_state=VmState.ERROR,
                task_state=None,
                migration_context=None,
            )


class EvacuateEndpoint:
    """RPC: evacuate_instance, clean_evacuated."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def evacuate_instance(
        self, context: RequestContext, *, instance_uuid: str, host: str | None, forced: bool, power_on: bool
    ) -> None:
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        if instance.task_state not in REBUILDING or instance.host is None:
            return
        migration = self._migration(context, instance, cell.uuid, database)
        there: Instance | None = None
        try:
            with history.event(database, context, instance_uuid, "rebuild_server", services.host):
                there = self._select(context, database, instance, migration, cell.uuid, host, forced)
            services.notifier.instance_action(
                context, instance, "evacuate", None, host=services.host, source="nova-api"
            )
            with history.event(database, context, instance_uuid, "compute_rebuild_instance", there.host or ""):
                self._rebuild(context, cell.uuid, database, there, power_on)
        except errors.CausewayError as failure:
            self._give_up(context, cell.uuid, database, instance, migration, there, failure)
            return
        migrations.update(services.api, migration.uuid, status=MigrationStatus.DONE)

    def _migration(self, context: RequestContext, instance: Instance, cell_uuid: str, database: Database) -> Migration:
        node = next(iter(hosts.list_nodes(database, host=instance.host)), None)
        if node is None:
            raise errors.HostNotFound(f"Compute host {instance.host} could not be found.")
        migration = Migration(
            uuid=str(uuids.uuid4()),
            instance_uuid=instance.uuid,
            migration_type=EVACUATION,
            status=MigrationStatus.ACCEPTED,
            source_compute=instance.host,
            source_node=node.hypervisor_hostname,
            source_cell=cell_uuid,
            dest_cell=cell_uuid,
            user_id=context.user_id,
            project_id=context.project_id,
        )
        with self._services.api.write() as connection:
            migrations.insert_in(connection, migration)
        migration.source_node = node.uuid
        return migration

    def _select(
        self,
        context: RequestContext,
        database: Database,
        instance: Instance,
        migration: Migration,
        cell_uuid: str,
        host: str | None,
        forced: bool,
    ) -> Instance:
        """The server as it is to be on the host that was chosen for it."""
        services = self._services
        place = placing.choose(
            services,
            context,
            instance,
            cell_uuid,
            host=host,
            forced=forced,
            move=MoveClaim(migration.uuid, migration.source_node or ""),
        )
        # From now on messages of the network service go to the new host, which waits for them.
        instances.update(
            database,
            instance.uuid,
            migration_context=MigrationContext(migration.uuid, dest_host=place.selection.host, dest_cell=cell_uuid),
        )
        migrations.update(
            services.api,
            migration.uuid,
            dest_compute=place.selection.host,
            dest_node=place.selection.hypervisor_hostname,
            dest_host=place.selection.host_ip,
        )
        return place.instance

    def _rebuild(
        self,
        context: RequestContext,
        cell_uuid: str,
        database: Database,
        there: Instance,
        power_on: bool,
    ) -> None:
        services, host, present = self._services, there.host or "", block_devices.of_instance(database, there.uuid)
        services.notifier.instance_action(context, there, "rebuild", "start", host=host, block_devices=present)
        attachments.reserve_anew(services, context, database, present)
        outcome = services.computes(cell_uuid).rebuild_instance(
            context, host, instance=there, block_devices=present, snapshot_id=None, power_on=power_on
        )
        becomes = VmState.ACTIVE if outcome.power_state is PowerState.RUNNING else VmState.STOPPED
        # A server that is deleted meanwhile is deleted where its guest is now.
        kept = devices.save_guest(
            database,
            there.uuid,
            outcome,
            host=there.host,
            node=there.node,
            availability_zone=there.availability_zone,
            numa_topology=outcome.numa_topology,
            pci_devices=outcome.pci_devices,
            migration_context=None,
        )
        if not kept:
            # It was deleted before there was anything of it that could have been removed.
            services.computes(cell_uuid).destroy_instance(
                context, host, instance=there, block_devices=outcome.block_devices
            )
            devices.release(services, context, there, outcome.block_devices)
            services.placement.delete_allocations(there.uuid)
            return
        try:
            instances.update(
                database,
                there.uuid,
                expected_task=REBUILDING,
                vm_state=becomes,
                task_state=None,
                launched_at=utcnow(),
            )
        except (errors.StateChanged, errors.ServerNotFound):
            LOG.info("Server %s changed while it was evacuated", there.uuid)
        there.vm_state, there.task_state, there.power_state = becomes, None, outcome.power_state
        services.notifier.instance_action(context, there, "rebuild", "end", host=host, block_devices=present)

    def _give_up(
        self,
        context: RequestContext,
        cell_uuid: str,
        database: Database,
        instance: Instance,
        migration: Migration,
        there: Instance | None,
        failure: errors.CausewayError,
    ) -> None:
        """The server is at its dead host as before; what was begun at the other one goes."""
        services = self._services
        if there is not None:
            present = block_devices.of_instance(database, instance.uuid)
            try:
                services.computes(cell_uuid).destroy_instance(
                    context, there.host or "", instance=there, block_devices=present
                )
                attachments.reserve_anew(services, context, database, present, in_doubt=True)
            except errors.CausewayError as second:
                LOG.warning("Host %s may still hold something of %s: %s", there.host, instance.uuid, second.message)
        services.placement.give_back(instance.uuid, migration.uuid, source_provider=migration.source_node)
        migrations.update(services.api, migration.uuid, status=MigrationStatus.ERROR)
        # Without a host that would fit nothing happened to it; else it is not known to be whole.
        becomes = instance.vm_state if there is None else VmState.ERROR
        history.fail(
            database, instance.uuid, failure, instance.host, vm_state=becomes, task_state=None, migration_context=None
        )
        services.notifier.compute_task_error(
            context, "rebuild_server", instance_uuid=instance.uuid, state=becomes, error=failure
        )

    def clean_evacuated(self, context: RequestContext, *, host: str) -> None:  # noqa: ARG002
        services, ours = self._services, admin_context()
        try:
            leftovers.clean(services, ours, host)
        except errors.CausewayError as failure:
            LOG.warning("What is left on %s stays: %s %s", host, failure.message, failure.details)
        for migration in migrations.search(
            services.api, source_compute=host, migration_type=EVACUATION, statuses=[MigrationStatus.DONE]
        ):
            try:
                self._clean(ours, host, migration)
            except errors.CausewayError as failure:
                LOG.warning("What is left of %s on %s stays: %s", migration.instance_uuid, host, failure.message)

    def _clean(self, context: RequestContext, host: str, migration: Migration) -> None:
        services, uuid = self._services, migration.instance_uuid
        database = services.cells.database(migration.source_cell or "")
        instance = instances.find(database, uuid, deleted=True)
        if instance is not None and (instance.host != host or instance.deleted):
            computes = services.computes(migration.source_cell or "")
            if computes.inspect_instance(context, host, instance_uuid=uuid).power_state is PowerState.RUNNING:
                # Before anything else: it may run at its new host, too.
                computes.power_off_instance(context, host, instance=instance)
            if instance.host is not None and not instance.deleted:
                there = computes.inspect_instance(context, instance.host, instance_uuid=uuid)
                if there.power_state is None:
                    raise errors.CopyNotUsable(
                        f"Server {uuid} is not where it was evacuated to.", details=f"host {instance.host}: {there}"
                    )
            LOG.warning("Host %s is back: what server %s left there when it was evacuated is removed", host, uuid)
            # Its ports and volumes are in use elsewhere: nothing but the guest and its disks goes.
            computes.destroy_instance(
                context, host, instance=dataclasses.replace(instance, network_info=[]), block_devices=[]
            )
        services.placement.delete_allocations(migration.uuid)
        migrations.update(services.api, migration.uuid, status=MigrationStatus.COMPLETED)
