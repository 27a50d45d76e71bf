"""Operations that APIs of the previous release ask for: they have set the task, and written nothing to the journal."""

from __future__ import annotations

import uuid as uuids
from typing import Any

import msgspec

from causeway import errors
from causeway.conductor.moves import Keeper
from causeway.context import RequestContext
from causeway.model import operations
from causeway.model.instance import Instance
from causeway.model.migration import Migration
from causeway.model.moves import Move
from causeway.model.states import VmState
from causeway.operations.evacuate import EvacuateMemory, migration_of
from causeway.operations.images import ImageMemory
from causeway.operations.rebuild import RebuildMemory
from causeway.operations.shelve import IMAGE, ShelveMemory
from causeway.operations.unshelve import UnshelveMemory
from causeway.parts.services import ConductorServices
from causeway.store.api import journal, migrations
from causeway.store.cell import hosts, instances


class FormerRequestsEndpoint:
    """RPC: snapshot_instance, rebuild_instance, shelve_instance, shelve_offload_instance, unshelve_instance,
    evacuate_instance.
    """

    def __init__(self, services: ConductorServices, keeper: Keeper) -> None:
        self._services = services
        self._keeper = keeper

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
        """Nothing, if the server has another task by now."""
        services = self._services
        try:
            _cell, database = services.cells.of_server(instance_uuid)
            instance = instances.get(database, instance_uuid)
        except errors.ServerNotFound:
            return
        if instance.task_state is not operations.TASKS[recipe]:
            return
        saga_id = str(uuids.uuid4())
        move = Move(
            id=saga_id,
            migration_uuid=saga_id if migration is None else migration.uuid,
            instance_uuid=instance_uuid,
            recipe=recipe,
            data=msgspec.to_builtins(memory(instance)),
            request_id=context.request_id,
            user_id=context.user_id,
            project_id=context.project_id,
            memory_version=1,
        )
        with services.api.write() as connection:
            if migration is not None:
                migrations.insert_in(connection, migration)
            journal.insert_in(connection, move)
        self._keeper.submit(context, saga_id)
