"""Revert: restores the server at its source, with the disks that it had when it left."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway import errors
from causeway.hardware.port_devices import with_device
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import MigrationStatus, TaskState, VmState
from causeway.model.things import Thing
from causeway.moves import events
from causeway.moves.dead_hosts import answering, at_source, clean_target, raise_if_down, recent_life, undo_order
from causeway.moves.destination import disk_gb_in_storage
from causeway.moves.hardware import with_old
from causeway.moves.memory import MoveMemory
from causeway.moves.move_run import Run
from causeway.moves.port_resources import at_source as ports_at_source
from causeway.moves.recipe import Step
from causeway.moves.steps.check import require_whole_source_again
from causeway.moves.steps.confirm import NOT_MOVED
from causeway.moves.steps.dead_source import add_fault_in, restore_records_only
from causeway.moves.steps.local_disks import for_old_flavor
from causeway.moves.steps.records import change_in_place, last_read, require_authority, task_after
from causeway.moves.steps.reservations import delete_orphaned_attachments, reserve, volumes
from causeway.sagas.journal import Write
from causeway.servers.unplugged import warn_of_unplugged
from causeway.store.api import journal, mappings
from causeway.store.cell import block_devices, copies, instances


def as_reverting(run: Run, source: Instance, target: Instance) -> Instance:
    """Returns the source's record for a revert: with the source's place, and everything that users may have changed since."""
    memory = run.memory
    return dataclasses.replace(
        target,
        host=source.host,
        node=source.node,
        availability_zone=source.availability_zone,
        flavor=memory.old_flavor,
        old_flavor=None,
        new_flavor=None,
        old_vm_state=memory.old_vm_state,
        numa_topology=source.numa_topology,
        pci_requests=source.pci_requests,
        pci_devices=source.pci_devices,
        migration_context=source.migration_context,
        vm_state=memory.restored_state,
        task_state=task_after(target.task_state, TaskState.RESIZE_REVERTING),
        power_state=source.power_state,
        network_info=[vif for vif in source.network_info if vif.id in {other.id for other in target.network_info}]
        + [vif for vif in target.network_info if vif.id not in {other.id for other in source.network_info}],
        hidden=True,
    )


def source_devices(run: Run, devices: list[BlockDevice]) -> list[BlockDevice]:
    """Returns the target's volumes with their unconnected attachments at the source, and the local disks before the resize."""
    return [
        dataclasses.replace(device, attachment_id=run.memory.pair(volume).source, connection_info=None)
        if (volume := device.volume_id) is not None
        else device
        for device in for_old_flavor(run, devices)
    ]


def reserve_volumes(run: Run, devices: list[BlockDevice]) -> None:
    """Reserves the server's present volumes at the source, and deletes attachments of volumes that it no longer has."""
    present = {volume_id for _device, volume_id in volumes(devices)}
    for pair in list(run.memory.attachments):
        if pair.volume_id not in present and pair.source is not None:
            # The volume was detached since the resize.
            run.services.volumes.delete_attachment(run.context, pair.source)
            run.memory.attachments.remove(pair)
    for device, volume_id in volumes(devices):
        pair = run.memory.pair(volume_id)
        if device.attachment_id != pair.source:
            pair.target = device.attachment_id
        if pair.source is None:
            pair.source = reserve(run, volume_id, _known(run, devices))
            run.save()


def release_volumes(run: Run, devices: list[BlockDevice]) -> None:
    """Undoes `reserve_volumes`: deletes every reservation at the source except those that the resize made."""
    resize = msgspec.convert(journal.resize_of(run.services.api, run.move.migration_uuid).data, MoveMemory)
    before = {pair.source for pair in resize.attachments}
    for pair in run.memory.attachments:
        if pair.source is not None and pair.source not in before:
            run.services.volumes.delete_attachment(run.context, pair.source)
            pair.source = None
    if volumes(devices):
        delete_orphaned_attachments(run, before | _known(run, devices))


def _known(run: Run, devices: list[BlockDevice]) -> set[str | None]:
    """Returns the attachments that the records or the memory have."""
    pairs = run.memory.attachments
    return {device.attachment_id for device in devices} | {id for pair in pairs for id in (pair.source, pair.target)}


class ReturnRecords(Step):
    """Updates the source cell's records with every change since the resize: attaches, detaches, renames, actions.

    First it closes the target's records, so that later changes wait until the server lives in the source cell.
    """

    name = "ReturnRecords"
    reads = frozenset(
        {"attachments", "local_devices", "old_flavor", "old_vm_state", "runs_in_error", "selection", "source_cell"}
    )
    makes = frozenset({Thing.ATTACHMENT})

    def do(self, run: Run) -> None:
        source = run.source_instance()
        reserve_volumes(run, run.target_devices())
        with last_read(run, run.target_database) as bundle:
            run.know_records(run.memory.target_cell, bundle.instance, bundle.block_devices)
            bundle.instance = as_reverting(run, source, bundle.instance)
            bundle.block_devices = source_devices(run, bundle.block_devices)
            copies.write(run.source_database, bundle, closed_by=run.move.id)
        run.know_records(run.memory.source_cell, bundle.instance, bundle.block_devices)
        run.keep_records(run.memory.target_cell)
        run.keep_records(run.memory.source_cell)

    def undo(self, run: Run) -> None:
        """Does nothing: the source's copy is hidden and may stay as it is."""
        instances.reopen(run.target_database, run.uuid, run.move.id)
        release_volumes(run, run.target_devices())


class SwitchInstanceMappingBack(Step):
    """The pivot: switches the server to the source cell. Its status is REVERT_RESIZE until its guest runs."""

    name = "SwitchInstanceMappingBack"
    reads = frozenset({"old_flavor", "old_vm_state", "runs_in_error", "selection", "source_cell"})
    pivots = True

    def with_start(self, run: Run) -> Write | None:
        return None if run.move.pivoted else lambda connection: self._switch(connection, run)

    def do(self, run: Run) -> None:
        instances.show(run.source_database, run.uuid, run.move.id, former=run.target_database)
        instances.set_hidden(run.target_database, run.uuid, hidden=True)
        run.keep_records(run.memory.target_cell, hidden=True)
        run.keep_records(run.memory.source_cell, hidden=False)

    def _switch(self, connection: sa.Connection, run: Run) -> None:
        mappings.set_cell_in(connection, run.uuid, run.memory.source_cell, expected=run.memory.target_cell)
        restore_spec(connection, run)


def restore_spec(connection: sa.Connection, run: Run) -> None:
    """Writes the old flavor into the request spec, for later moves."""
    mappings.set_in_spec_in(connection, run.uuid, flavor=run.memory.old_flavor)


class BeginRevert(Step):
    """The pivot of a revert inside a cell: reserves the volumes for the source."""

    name = "BeginRevert"
    reads = frozenset({"attachments", "old_flavor", "old_vm_state", "runs_in_error", "source_cell"})
    makes = frozenset({Thing.ATTACHMENT})

    def do(self, run: Run) -> None:
        if not run.move.pivoted:
            reserve_volumes(run, run.source_devices())
        run.pivot_with_end(lambda connection: restore_spec(connection, run))

    def undo(self, run: Run) -> None:
        release_volumes(run, run.source_devices())


class DestroyAtTarget(Step):
    """Destroys the guest at the target, with its disks and its connections to volumes."""

    name = "DestroyAtTarget"
    reads = frozenset(
        {
            "attachments",
            "local_devices",
            "old_flavor",
            "old_vm_state",
            "runs_in_error",
            "selection",
            "source_cell",
            "source_host",
        }
    )

    def where(self, run: Run) -> str | None:
        return run.memory.target_host

    def do(self, run: Run) -> None:
        # The target's records say what is connected there. If they have been deleted, so has everything else.
        try:
            instance, devices = run.target_instance(), run.target_devices()
        except errors.ServerNotFound:
            return
        if run.step is not None and run.step.attempt > 1:
            # Time has passed since `CheckSource`, so the check is repeated.
            self._check_again(run)
        if run.services.notifier.is_enabled:
            self._notify_start(run, instances.get(run.target_database, run.uuid))
        with events.DESTROY_AT_TARGET.during(run, run.memory.target_host):
            clean_target(
                run, undo_order(run), instance, devices, lambda: self._destroy_at_target(run, instance, devices)
            )
        for pair in run.memory.attachments:
            if pair.target is not None:
                run.services.volumes.delete_attachment(run.context, pair.target)
        if run.memory.is_cross_cell:
            run.keep_records(run.memory.source_cell)

    def _check_again(self, run: Run) -> None:
        if run.source_instance().task_state is not TaskState.DELETING:
            require_whole_source_again(run)

    def _notify_start(self, run: Run, instance: Instance) -> None:
        """Sends the notification that the revert starts, as Nova: across cells as the conductor, inside a cell as the source."""
        notifier, memory = run.services.notifier, run.memory
        if memory.is_cross_cell:
            notifier.instance_action(run.context, instance, "resize_revert", "start", host=run.services.host)
            notifier.instance_exists(run.context, instance, host=memory.target_host)
            return
        notifier.instance_exists(run.context, instance, host=memory.target_host)
        notifier.instance_action(
            run.context,
            instance,
            "resize_revert",
            "start",
            host=memory.source_host,
            block_devices=run.target_devices(),
        )

    def _destroy_at_target(self, run: Run, instance: Instance, devices: list[BlockDevice]) -> None:
        run.target_computes.drop_move_at_dest(
            run.context,
            run.memory.target_host,
            token=run.token(self.name),
            instance=instance,
            block_devices=devices,
            same_host=run.memory.is_same_host,
        )


class DeleteTargetRecords(Step):
    """Hard-deletes the server's records in the target cell."""

    name = "DeleteTargetRecords"
    reads = frozenset({"old_vm_state", "runs_in_error", "selection", "source_cell"})

    def do(self, run: Run) -> None:
        require_authority(run, run.memory.source_cell)
        copies.hard_delete(run.target_database, run.uuid, hidden_only=True)
        run.keep_records(run.memory.source_cell)


class ReturnRecord(Step):
    """Inside a cell: sets the server's host to its source again."""

    name = "ReturnRecord"
    reads = frozenset(
        {
            "attachments",
            "local_devices",
            "old_flavor",
            "old_vm_state",
            "runs_in_error",
            "port_allocations",
            "source_cell",
            "source_host",
            "source_hypervisor",
            "source_zone",
        }
    )

    def do(self, run: Run) -> None:
        memory = run.memory
        with run.source_database.write() as connection:
            instance = instances.get_in(connection, run.uuid, with_tags=False)
            returned = dataclasses.replace(
                with_old(instance),
                host=memory.source_host,
                node=memory.source_hypervisor,
                availability_zone=memory.source_zone,
                flavor=memory.old_flavor,
                vm_state=memory.restored_state,
                task_state=task_after(instance.task_state, TaskState.RESIZE_REVERTING),
                network_info=_with_old_devices(ports_at_source(memory, instance.network_info), instance),
            )
            change_in_place(connection, run, instance, returned, source_devices)


def _with_old_devices(vifs: list[Vif], instance: Instance) -> list[Vif]:
    """Returns the ports with the PCI devices that they have at the source."""
    old = {device.request_id: device for device in with_old(instance).pci_devices}
    return [
        dataclasses.replace(vif, profile=with_device(vif.profile, old[vif.id])) if vif.id in old else vif
        for vif in vifs
    ]


class RestoreAtSource(Step):
    """Starts the guest at the source from its stashed disks, with its ports and volumes."""

    name = "RestoreAtSource"
    reads = frozenset({"attachments", "old_vm_state", "runs_in_error", "selection", "source_cell", "source_host"})
    writes = frozenset({"guest", "source_is_dead"})

    def where(self, run: Run) -> str | None:
        return run.memory.source_host

    def do(self, run: Run) -> None:
        memory = run.memory
        source = recent_life(run, memory.source_host, at_source)
        raise_if_down(source)
        if source.is_fenced:
            restore_records_only(run)
            for vif in run.source_instance().network_info if not memory.is_same_host else ():
                run.services.network.delete_binding(run.context, vif.id, memory.target_host)
            return
        with events.RESTORE_AT_SOURCE.during(run, memory.source_host), answering(run, at_source):
            memory.guest = self._restore_guest(run)
        warn_of_unplugged(run, memory.source_host, memory.guest)
        # In an earlier attempt the source may have been fenced.
        memory.source_is_dead = False
        with run.source_database.write() as connection:
            for device in memory.guest.block_devices:
                block_devices.update_in(connection, device.uuid, connection_info=device.connection_info)
        for vif in memory.guest.network_info if not memory.is_same_host else ():
            run.services.network.delete_binding(run.context, vif.id, memory.target_host)

    def _restore_guest(self, run: Run) -> GuestOutcome:
        return run.source_computes.restore_at_source(
            run.context,
            run.memory.source_host,
            token=run.token(self.name),
            instance=run.source_instance(),
            block_devices=run.source_devices(),
            power_on=run.memory.was_running,
        )


class ReturnAllocations(Step):
    """Returns the migration's allocations at the source to the server, and releases the target's allocations."""

    name = "ReturnAllocations"
    reads = frozenset({"old_flavor", "old_vm_state", "runs_in_error", "source_node", "source_storage"})

    def do(self, run: Run) -> None:
        run.services.placement.return_allocations(
            run.uuid,
            run.move.migration_uuid,
            source_provider=run.memory.source_node,
            disk_gb=disk_gb_in_storage(run.services.api, run.uuid, run.memory),
        )


class FinishRevert(Step):
    """Sets the server to ACTIVE or SHUTOFF as before the resize, and the migration to reverted."""

    name = "FinishRevert"
    reads = frozenset(
        {
            "events",
            "guest",
            "old_vm_state",
            "runs_in_error",
            "selection",
            "source_cell",
            "source_host",
            "source_is_dead",
        }
    )
    # Written before the server's own state: a client that sees ACTIVE may start the next move.
    migration_status = MigrationStatus.REVERTED

    def do(self, run: Run) -> None:
        memory = run.memory
        guest = memory.guest
        changes: dict[str, Any] = {}
        if guest is not None:
            changes = {"power_state": guest.power_state, "network_info": guest.network_info, **guest.renamed}
        with run.source_database.write() as connection:
            run.write_history(connection)
            vm_state = VmState.ERROR if memory.source_is_dead else memory.restored_state
            changes |= {"vm_state": vm_state} | NOT_MOVED
            if instances.end_task_in(connection, run.uuid, {TaskState.RESIZE_REVERTING}, **changes):
                if memory.source_is_dead:
                    add_fault_in(connection, run)
            else:
                # An earlier attempt ended the task. Another request may have changed the server's states since.
                instances.update_in(connection, run.uuid, **NOT_MOVED)
        if run.services.notifier.is_enabled:
            publisher = run.services.host if memory.is_cross_cell else memory.source_host
            devices = None if memory.is_cross_cell else block_devices.of_instance(run.source_database, run.uuid)
            run.services.notifier.instance_action(
                run.context,
                instances.get(run.source_database, run.uuid),
                "resize_revert",
                "end",
                host=publisher,
                block_devices=devices,
            )
