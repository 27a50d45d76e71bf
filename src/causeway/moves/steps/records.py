"""The steps that copy the server's records to the other cell, and switch the server from one cell to the other."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from causeway import errors
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance, MigrationContext
from causeway.model.states import DELETING, MigrationStatus, TaskState, VmState
from causeway.moves.cells_run import CellsRun
from causeway.moves.hardware import with_new
from causeway.moves.move_run import Run
from causeway.moves.recipe import Step
from causeway.moves.steps.direct import wipe_secret
from causeway.moves.steps.images import delete_images
from causeway.moves.steps.local_disks import for_new_flavor
from causeway.running.patience import ServerStep
from causeway.running.server_run import ServerRun
from causeway.sagas.journal import Write
from causeway.store.api import group_claims, mappings, migrations
from causeway.store.cell import actions, block_devices, copies, instances
from causeway.store.database import Database, utcnow

C = TypeVar("C", bound=CellsRun[Any])

# The fields of memory that `as_moved` reads.
OF_A_MOVED_SERVER = frozenset(
    {
        "attachments",
        "disks",
        "events",
        "group",
        "guest",
        "keeps_memory",
        "new_flavor",
        "offer",
        "old_flavor",
        "old_vm_state",
        "runs_in_error",
        "selection",
        "snapshot",
        "source_cell",
    }
)


def require_authority(run: ServerRun[Any], cell_uuid: str) -> None:
    """Raises StateChanged unless the server's mapping names this cell. Steps check this before they delete the other records."""
    found = mappings.get(run.services.api, run.uuid).cell_uuid
    if found != cell_uuid:
        raise errors.StateChanged(f"Server {run.uuid} lives in cell {found}, not in {cell_uuid}.")


@contextmanager
def last_read(run: ServerRun[Any], database: Database) -> Iterator[copies.Bundle]:
    """Closes the records of the server in the cell that it leaves, so that others can't write them, and reads all of them.

    Opens the records again if the block fails.
    """
    bundle = copies.close_and_read(database, run.uuid, run.saga.id)
    try:
        yield bundle
    except Exception:
        run.check_lease()
        instances.reopen(database, run.uuid, run.saga.id)
        raise


def task_after(present: TaskState | None, following: TaskState | None) -> TaskState | None:
    """Returns the server's next task: ``following``, except that a server that is being deleted keeps its task."""
    return present if present in DELETING else following


def as_moved(run: Run, instance: Instance) -> Instance:
    """Returns the server's record for its target, where it waits for confirm or revert, or its guest waits to be resumed."""
    memory = run.memory
    guest = memory.guest
    assert guest is not None, "the guest is made before its record says so"
    assert instance.migration_context is not None
    return dataclasses.replace(
        with_new(instance),
        host=memory.target_host,
        node=memory.destination.hypervisor_hostname,
        availability_zone=memory.destination.availability_zone,
        flavor=memory.new_flavor,
        old_flavor=memory.old_flavor,
        new_flavor=memory.new_flavor,
        old_vm_state=memory.old_vm_state,
        vm_state=VmState.RESIZED if memory.is_confirmed_later else memory.old_vm_state,
        task_state=task_after(instance.task_state, TaskState.MIGRATING if memory.keeps_memory else None),
        power_state=guest.power_state,
        network_info=guest.network_info,
        guest_name=guest.guest_name or instance.guest_name,
        launched_at=instance.launched_at if memory.keeps_memory else utcnow(),
        updated_at=utcnow(),
        progress=0,
    )


def target_devices(run: Run, devices: list[BlockDevice]) -> list[BlockDevice]:
    """Returns the block devices for the new flavor, with the attachments at the target: connected if the guest is there."""
    connected = {device.volume_id: device for device in (run.memory.guest.block_devices if run.memory.guest else [])}
    found = []
    for device in for_new_flavor(run, devices):
        if device.volume_id is None:
            found.append(device)
            continue
        there = connected.get(device.volume_id)
        found.append(
            dataclasses.replace(
                device,
                attachment_id=run.memory.pair(device.volume_id).target,
                connection_info=there.connection_info if there is not None else None,
            )
        )
    return found


class TargetDBSetup(Step):
    """Copies the server and its devices into the target cell, hidden, in one transaction.

    The server's history is copied later, at the switch.
    """

    name = "TargetDBSetup"
    reads = frozenset(
        {
            "new_flavor",
            "old_flavor",
            "old_vm_state",
            "runs_in_error",
            "selection",
            "source_cell",
            "source_host",
        }
    )
    reads_if_any = frozenset({"attachments", "guest"})

    def where(self, run: Run) -> str | None:
        # `ReserveTarget`, which joins this step, orders the host to do something.
        return run.memory.target_host

    def do(self, run: Run) -> None:
        memory = run.memory
        # What users have changed since the step before has read this is written at the switch.
        hidden = dataclasses.replace(
            run.source_instance(),
            hidden=True,
            old_flavor=memory.old_flavor,
            new_flavor=memory.new_flavor,
            # The context names the hosts of the move. The target's claim is added later.
            migration_context=MigrationContext(
                run.move.migration_uuid,
                source_host=memory.source_host,
                dest_host=memory.target_host,
                source_cell=memory.source_cell,
                dest_cell=memory.target_cell,
            ),
        )
        bundle = copies.Bundle(hidden, target_devices(run, run.source_devices()), [], [])
        copies.write(run.target_database, bundle, closed_by=run.move.id, is_first=not run.is_repeated)
        run.keep_records(memory.source_cell)

    def undo(self, run: Run) -> None:
        require_authority(run, run.memory.source_cell)
        copies.hard_delete(run.target_database, run.uuid, hidden_only=True)


class SwitchRecords(ServerStep[C], Generic[C]):
    """The pivot: switches the server to the target cell.

    First it closes the source's records, so that later changes wait until the server lives in the target cell. Then it writes
    the target's records with everything that users have changed meanwhile.
    """

    def do(self, run: C) -> None:
        if not self._is_done(run):
            with last_read(run, run.source_database) as bundle:
                self._change(run, bundle)
                copies.write(run.target_database, bundle, closed_by=run.saga.id)
            self._commit(run, lambda connection: self._switch(connection, run))

    def _is_done(self, run: C) -> bool:
        return run.saga.pivoted

    @abstractmethod
    def _change(self, run: C, bundle: copies.Bundle) -> None:
        """Makes the records, which were read at the source, those of the target."""

    def _commit(self, run: C, switch: Write) -> None:
        run.pivot_with_end(switch)

    def _switch(self, connection: sa.Connection, run: C) -> None:
        mappings.set_cell_in(connection, run.uuid, run.memory.target_cell, expected=run.memory.source_cell)

    def undo(self, run: C) -> None:
        instances.reopen(run.source_database, run.uuid, run.saga.id)


class SwitchInstanceMapping(SwitchRecords[Run]):
    """The pivot: switches the server to the target cell, where it waits for confirm or revert; its history goes along."""

    name = "SwitchInstanceMapping"
    reads = OF_A_MOVED_SERVER

    def _change(self, run: Run, bundle: copies.Bundle) -> None:
        bundle.instance = dataclasses.replace(as_moved(run, bundle.instance), hidden=True)
        bundle.block_devices = target_devices(run, bundle.block_devices)
        if run.memory.is_confirmed_later:
            # In other moves the last step writes the history of the action.
            copies.add_events(bundle, run.context.request_id, run.history())

    def _switch(self, connection: sa.Connection, run: Run) -> None:
        super()._switch(connection, run)
        finish_migration(connection, run)


def finish_migration(connection: sa.Connection, run: Run) -> None:
    """Sets the migration to finished if the server waits for confirm or revert. Writes the new flavor for later moves."""
    memory = run.memory
    size, of_memory = memory.bytes_of_disks, memory.bytes_of_memory
    changes: dict[str, Any] = {}
    if size is not None:
        changes = {"disk_total_bytes": size, "disk_processed_bytes": size}
    if memory.is_confirmed_later:
        changes["status"] = MigrationStatus.FINISHED
    if of_memory is not None:
        changes |= {"memory_total_bytes": of_memory, "memory_processed_bytes": of_memory, "memory_remaining_bytes": 0}
    migrations.update_in(connection, run.move.migration_uuid, **changes)
    if run.memory.group is not None:
        # The reservation in the group is not needed any more: by now the server's record names both hosts.
        group_claims.release_in(connection, run.uuid)
    mappings.set_in_spec_in(connection, run.uuid, flavor=run.memory.new_flavor)


class ShowRecords(ServerStep[C], Generic[C]):
    """Shows the target's records and hides the source's."""

    name = "ShowRecords"
    reads = frozenset({"source_cell", "target_cell"})

    def do(self, run: C) -> None:
        instances.show(run.target_database, run.uuid, run.saga.id, former=run.source_database)
        instances.set_hidden(run.source_database, run.uuid, hidden=True)


class ShowTarget(ShowRecords[Run]):
    """Shows the target's records and hides the source's, and deletes the temporary images."""

    name = "ShowTarget"
    reads = frozenset(
        {
            "carries_firmware",
            "disk_image_ids",
            "image_id",
            "image_round",
            "keeps_memory",
            "local_devices",
            "offer",
            "old_vm_state",
            "runs_in_error",
            "selection",
            "source_cell",
            "warm",
        }
    )

    def do(self, run: Run) -> None:
        super().do(run)
        wipe_secret(run)
        delete_images(run)


class DeleteSourceRecords(ServerStep[CellsRun[Any]]):
    """Hard-deletes the server's records in the source cell, after it has read those of the target cell."""

    name = "DeleteSourceRecords"
    reads = frozenset({"source_cell", "target_cell"})

    def do(self, run: CellsRun[Any]) -> None:
        require_authority(run, run.memory.target_cell)
        run.target_instance()
        copies.hard_delete(run.source_database, run.uuid, hidden_only=True)
        run.keep_records(run.memory.target_cell)


def change_in_place(
    connection: sa.Connection,
    run: Run,
    before: Instance,
    after: Instance,
    devices: Callable[[Run, list[BlockDevice]], list[BlockDevice]],
) -> None:
    """Inside a cell: writes only those parts of the server's record that the move changes, so that users' changes stay.

    ``before``: the record as it was read in this transaction.
    """
    instances.update_in(connection, run.uuid, **instances.MAPPER.differences(before, after))
    present = block_devices.of_instance_in(connection, run.uuid)
    block_devices.change_in(connection, present, devices(run, present))


class MoveRecord(Step):
    """The pivot of a move inside a cell: sets the server's new host. The server waits for confirm or revert."""

    name = "MoveRecord"
    reads = OF_A_MOVED_SERVER

    def do(self, run: Run) -> None:
        if not run.move.pivoted:
            run.pivot(also=lambda connection: finish_migration(connection, run))
        with run.source_database.write() as connection:
            instance = instances.get_in(connection, run.uuid, with_tags=False)
            if instance.host != run.memory.target_host or instance.vm_state is not VmState.RESIZED:
                change_in_place(connection, run, instance, as_moved(run, instance), target_devices)
                actions.add_events_in(connection, run.uuid, run.context.request_id, run.history())
        wipe_secret(run)
