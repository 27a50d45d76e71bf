"""What an earlier process left in the middle, apart from moves (those are in their journal).

Builds that had no host yet are built, deletes are done, and other tasks are ended: the server gets the state that its guest
really has.
"""

from __future__ import annotations

import logging

from causeway import errors
from causeway.conductor import evacuate, history
from causeway.conductor.services import ConductorServices
from causeway.context import admin_context
from causeway.model.instance import Instance
from causeway.model.states import PowerState, TaskState, VmState
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import build_requests, journal
from causeway.store.cell import instances
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

INTERRUPTED = "The service was stopped while it worked on this server."


def settle(services: ConductorServices, conductor: ConductorClient) -> None:
    """Ends or repeats every task that nobody works on. Only for when nobody works on anything."""
    for request in build_requests.list_for(services.api, None):
        conductor.build_instance(admin_context(), instance_uuid=request.instance_uuid)
    evacuate.settle(services)
    moving = {move.instance_uuid for move in journal.unfinished(services.api)}
    for cell in services.cells.mappings(cell0=False):
        database = services.cells.database(cell.uuid)
        busy = instances.SELECT.where(
            instances.TABLE.c.task_state.is_not(None),
            instances.TABLE.c.deleted.is_(False),
            instances.TABLE.c.uuid.not_in(moving),
        )
        for instance in instances.select(database, busy, with_tags=False):
            if not instance.hidden:
                _settle(services, conductor, cell.uuid, database, instance)


def _settle(
    services: ConductorServices, conductor: ConductorClient, cell_uuid: str, database: Database, instance: Instance
) -> None:
    LOG.warning("Server %s was left with task %s", instance.uuid, instance.task_state)
    if instance.task_state in (TaskState.DELETING, TaskState.SOFT_DELETING):
        conductor.delete_instance(admin_context(), instance_uuid=instance.uuid)
        return
    if instance.vm_state is VmState.BUILDING:
        failure = errors.OperationFailed(f"{INTERRUPTED} It was not built: delete it and create another.")
        history.fail(database, instance.uuid, failure, instance.host, vm_state=VmState.ERROR, task_state=None)
        return
    try:
        facts = services.computes(cell_uuid).inspect_instance(
            admin_context(), instance.host or "", instance_uuid=instance.uuid
        )
    except errors.CausewayError as failure:
        LOG.warning("Host %s does not say what became of server %s: %s", instance.host, instance.uuid, failure.message)
        return
    power_state = facts.power_state if facts.power_state is not None else PowerState.SHUTDOWN
    vm_state = instance.vm_state
    if vm_state in (VmState.ACTIVE, VmState.STOPPED):
        vm_state = VmState.ACTIVE if power_state is PowerState.RUNNING else VmState.STOPPED
    instances.update(database, instance.uuid, task_state=None, power_state=power_state, vm_state=vm_state)
