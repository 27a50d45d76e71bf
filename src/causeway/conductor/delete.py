"""Deleting servers, wherever they are and whatever moves them."""

from __future__ import annotations

import logging

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.missed import Missed
from causeway.model.sagas import SagaState
from causeway.model.states import MigrationStatus, VmState
from causeway.moves.requests import request_confirm
from causeway.operations.engine import Engine
from causeway.operations.shelve import IMAGE
from causeway.parts import history, leftovers, liveness, releasing
from causeway.parts.requests import Requests, context_of
from causeway.parts.services import ConductorServices
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import groups, journal, mappings, migrations
from causeway.store.cell import block_devices, instances
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


class DeleteEndpoint:
    """RPC: delete_instance."""

    def __init__(self, services: ConductorServices, engine: Engine, conductor: ConductorClient) -> None:
        self._services = services
        self._engine = engine
        self._conductor = conductor

    def delete_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        """Deletes a server. While a move works on it nothing happens: whoever ends the move calls this again."""
        services = self._services
        if self._is_moved(instance_uuid):
            return
        try:
            cell, database = services.cells.of_server(instance_uuid)
            instance = instances.get(database, instance_uuid)
        except errors.ServerNotFound:
            return
        if migrations.search(services.api, instance_uuid=instance_uuid, statuses=[MigrationStatus.FINISHED]):
            try:
                if not self._confirm_first(context, instance):
                    LOG.info("Server %s is deleted when its resize is confirmed, which is tried again", instance_uuid)
                    return
            except errors.CausewayError as failure:
                self._failed(database, instance, failure)
                return
            cell, database = services.cells.of_server(instance_uuid)
            instance = instances.get(database, instance_uuid)
        elif self._is_moved(instance_uuid):
            # A confirm took the migration since we looked: it is in the journal now.
            return
        try:
            self._delete(context, cell.uuid, database, instance)
        except errors.CausewayError as failure:
            self._failed(database, instance, failure)

    def _is_moved(self, instance_uuid: str) -> bool:
        if journal.active_of_server(self._services.api, instance_uuid) is None:
            return False
        LOG.info("Server %s is being moved; it is deleted when the move has ended", instance_uuid)
        waiting = journal.waiting_of_server(self._services.api, instance_uuid)
        if waiting is not None:
            # It would hear of this when its pause is over.
            try:
                self._conductor.run_move(context_of(journal.get(self._services.api, waiting)), move_id=waiting)
            except errors.ServiceFailed as failure:
                LOG.warning("Move %s hears of the deletion a little later: %s", waiting, failure.message)
        return True

    def _failed(self, database: Database, instance: Instance, failure: errors.CausewayError) -> None:
        # Else the end of a later move would delete it. The mapping first: until it has no task, nobody asks again.
        mappings.queue_for_delete(self._services.api, instance.uuid, queued=False)
        history.fail(database, instance.uuid, failure, instance.host, vm_state=VmState.ERROR, task_state=None)
        LOG.warning("Server %s was not deleted: %s", instance.uuid, failure.message)

    def _confirm_first(self, context: RequestContext, instance: Instance) -> bool:
        """Nothing is to be left at the source: a server that waits for confirm is confirmed before it goes.

        False: that can't be done now, or somebody else does it. Who ends it deletes the server.
        """
        services = Requests(self._services.conf, self._services.api, self._services.cells, self._conductor)
        # An action of its own: the events of the two must not be mixed.
        own = context.for_another_request()
        try:
            move_id = request_confirm(services, own, instance, start=False)
            move = self._engine.run(own, move_id)
        except (errors.StateChanged, errors.MigrationNotFinished, errors.TakenOver):
            return False
        if move is not None and move.state is SagaState.FAILED:
            raise errors.from_wire(move.error) if move.error else errors.OperationFailed("The confirm failed.")
        return move is not None and move.state is SagaState.DONE

    def _delete(self, context: RequestContext, cell_uuid: str, database: Database, instance: Instance) -> None:
        services, uuid = self._services, instance.uuid
        volumes = block_devices.of_instance(database, uuid)
        services.notifier.instance_action(context, instance, "delete", "start", host=instance.host or "")
        with history.event(database, context, uuid, "compute_terminate_instance", instance.host or ""):
            self._destroy(context, cell_uuid, database, instance, volumes)
            releasing.release(services, context, instance, volumes)
            services.placement.delete_allocations(uuid)
            if IMAGE in instance.system_metadata:
                services.images.delete(context, instance.system_metadata[IMAGE])
        # In this order: who sees that the server is gone may at once want another one of its group in its place.
        groups.remove_member(services.api, uuid)
        instances.soft_delete(database, uuid)
        instance.vm_state, instance.task_state = VmState.DELETED, None
        services.notifier.instance_action(context, instance, "delete", "end", host=instance.host or "")

    def _destroy(
        self,
        context: RequestContext,
        cell_uuid: str,
        database: Database,
        instance: Instance,
        volumes: list[BlockDevice],
    ) -> None:
        """The guest and its disks go; a host that is down is noted to do that when it comes back, and is not waited for."""
        services, host = self._services, instance.host
        if not host:
            return
        if not liveness.of_host(services, database, host).is_up:
            leftovers.note(services, host, cell_uuid, Missed.DESTROY, instance, volumes)
            return
        services.notifier.instance_action(context, instance, "shutdown", "start", host=host)
        services.computes(cell_uuid).destroy_instance(context, host, instance=instance, block_devices=volumes)
        services.notifier.instance_action(context, instance, "shutdown", "end", host=host)
