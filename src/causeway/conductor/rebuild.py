"""Rebuilding servers on their host."""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.states import PowerState, TaskState, VmState
from causeway.parts import devices, history
from causeway.parts.services import ConductorServices
from causeway.store.cell import block_devices, instances
from causeway.store.database import utcnow

REBUILDING = {TaskState.REBUILDING, TaskState.REBUILD_SPAWNING}


class RebuildEndpoint:
    """RPC: rebuild_instance."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def rebuild_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        """A server that was off stays off; one in ERROR runs afterwards."""
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        if instance.task_state not in REBUILDING:
            return
        host, volumes = instance.host or "", block_devices.of_instance(database, instance_uuid)
        notifier, power_on = services.notifier, instance.vm_state is not VmState.STOPPED
        notifier.instance_exists(context, instance, host=host)
        notifier.instance_action(context, instance, "rebuild", "start", host=host, block_devices=volumes)
        try:
            with history.event(database, context, instance_uuid, "compute_rebuild_instance", host):
                outcome = services.computes(cell.uuid).rebuild_instance(
                    context, host, instance=instance, block_devices=volumes, snapshot_id=None, power_on=power_on
                )
        except errors.CausewayError as failure:
            history.fail(database, instance_uuid, failure, host, vm_state=VmState.ERROR, task_state=None)
            notifier.instance_action(
                context, instance, "rebuild", "error", host=host, fault=failure, block_devices=volumes
            )
            return
        becomes = VmState.ACTIVE if outcome.power_state is PowerState.RUNNING else VmState.STOPPED
        kept = devices.save_guest(
            database,
            instance_uuid,
            outcome,
            expected_task=REBUILDING,
            vm_state=becomes,
            task_state=None,
            launched_at=utcnow(),
            numa_topology=outcome.numa_topology,
            pci_devices=outcome.pci_devices,
            progress=0,
        )
        if kept:
            instance.vm_state, instance.task_state, instance.power_state = becomes, None, outcome.power_state
            notifier.instance_action(context, instance, "rebuild", "end", host=host, block_devices=volumes)
