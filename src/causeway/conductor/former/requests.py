"""Takes requests of APIs of the previous release, which set the task of a server but write no operation to the journal."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.conductor.endpoints.moves import Keeper
from causeway.conductor.former import work
from causeway.context import RequestContext
from causeway.model import operations
from causeway.model.instance import Instance
from causeway.model.migration import Migration
from causeway.model.states import DELETING, VmState
from causeway.operations.evacuate import EvacuateMemory, migration_of
from causeway.operations.images import ImageMemory
from causeway.operations.rebuild import RebuildMemory
from causeway.operations.requests import operation_of
from causeway.operations.shelve import IMAGE, ShelveMemory
from causeway.operations.unshelve_memory import UnshelveMemory
from causeway.parts.services import ConductorServices
from causeway.store.api import build_requests, journal, migrations
from causeway.store.cell import hosts, instances


class FormerRequestsEndpoint:
    """RPC: build_instance, delete_instance, snapshot_instance, rebuild_instance, shelve_instance, shelve_offload_instance,
    unshelve_instance, evacuate_instance.
    """

    def __init__(self, services: ConductorServices, keeper: Keeper) -> None:
        self._services = services
        self._keeper = keeper

    def build_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        request = build_requests.find(self._services.api, instance_uuid)
        if request is not None and journal.active_of_server(self._services.api, instance_uuid) is None:
            self._submit(context, work.build(self._services, request))

    def delete_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        try:
            _cell, database = self._services.cells.of_server(instance_uuid)
            instance = instances.get(database, instance_uuid)
        except errors.ServerNotFound:
            return
        if instance.task_state in DELETING:
            self._submit(context, work.delete(self._services, context, instance))

    def _submit(self, context: RequestContext, move_id: str | None) -> None:
        if move_id is not None:
            self._keeper.submit(context, move_id)

    def snapshot_instance(
        self,
        context: RequestContext,
        *,
        instance_uuid: str,
        image_id: str,
        rotation: int | None,
        backup_type: str | None,
    ) -> None:
        recipe = operations.CREATE_IMAGE if rotation is None else operations.CREATE_BACKUP
        self._begin(context, instance_uuid, recipe, lambda _: ImageMemory(image_id, rotation, backup_type))

    def rebuild_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        def memory(instance: Instance) -> RebuildMemory:
            return RebuildMemory(power_on=instance.vm_state is not VmState.STOPPED)

        self._begin(context, instance_uuid, operations.REBUILD, memory)

    def shelve_instance(self, context: RequestContext, *, instance_uuid: str, image_id: str | None) -> None:
        def memory(instance: Instance) -> ShelveMemory:
            offloads = image_id is None or self._services.conf.shelved_offload_time == 0
            return ShelveMemory(image_id, instance.vm_state is VmState.ACTIVE, offloads)

        self._begin(context, instance_uuid, operations.SHELVE, memory)

    def shelve_offload_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        self._begin(context, instance_uuid, operations.SHELVE_OFFLOAD, lambda _: ShelveMemory())

    def unshelve_instance(self, context: RequestContext, *, instance_uuid: str, host: str | None) -> None:
        def memory(instance: Instance) -> UnshelveMemory:
            return UnshelveMemory(host, instance.host is None, instance.system_metadata.get(IMAGE))

        self._begin(context, instance_uuid, operations.UNSHELVE, memory)

    def evacuate_instance(
        self, context: RequestContext, *, instance_uuid: str, host: str | None, forced: bool, power_on: bool
    ) -> None:
        cell, database = self._services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        node = next(iter(hosts.list_nodes(database, host=instance.host)), None)
        if node is None:
            return
        memory = EvacuateMemory(
            instance.host or "", node.uuid, power_on, instance.vm_state, wanted_host=host, forced=forced
        )
        migration = migration_of(context, instance, cell.uuid, node.hypervisor_hostname)
        self._begin(context, instance_uuid, operations.EVACUATE, lambda _: memory, migration)

    def _begin(
        self,
        context: RequestContext,
        instance_uuid: str,
        recipe: str,
        memory: Any,
        migration: Migration | None = None,
    ) -> None:
        """Begins an operation, unless the server has another task by now."""
        services = self._services
        try:
            _cell, database = services.cells.of_server(instance_uuid)
            instance = instances.get(database, instance_uuid)
        except errors.ServerNotFound:
            return
        if instance.task_state is not operations.TASKS[recipe]:
            return
        move = operation_of(context, instance_uuid, recipe, memory(instance), migration)
        with services.api.write() as connection:
            if migration is not None:
                migrations.insert_in(connection, migration)
            journal.insert_in(connection, move)
        self._submit(context, move.id)
