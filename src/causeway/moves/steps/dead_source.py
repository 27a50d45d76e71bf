"""Rolls a server back to a source that an operator has fenced.

The server's disks are stashed there, and nothing can start its guest. So it becomes a server of a dead host, in ERROR. An
administrator can evacuate it; its user can delete it, or wait. When the host is up again it puts the disks into their place, and
a hard reboot starts the guest.
"""

from __future__ import annotations

from contextlib import suppress

import sqlalchemy as sa

from causeway import errors
from causeway.model.instance import InstanceFault
from causeway.model.missed import Missed
from causeway.model.states import PowerState
from causeway.moves.dead_hosts import IS_DEAD, note_source
from causeway.moves.move_run import Run
from causeway.store.cell import actions, block_devices, instances


def restore_records_only(run: Run) -> None:
    """Restores the records, port bindings and volume attachments of the source, without a guest. May be repeated."""
    memory = run.memory
    memory.source_is_dead = True
    note_source(run, Missed.RESTORE_DISKS)
    for vif in run.source_instance().network_info if not memory.is_same_host else ():
        with suppress(errors.NotFound):
            run.services.network.activate_binding(run.context, vif.id, memory.source_host)
    with run.source_database.write() as connection:
        for device in run.source_devices():
            reserved = memory.pair(device.volume_id).source if device.volume_id is not None else None
            if reserved is not None:
                block_devices.update_in(connection, device.uuid, attachment_id=reserved, connection_info=None)
        instances.update_in(connection, run.uuid, power_state=PowerState.NOSTATE)


def add_fault_in(connection: sa.Connection, run: Run, details: str = "") -> None:
    """Adds a fault that says why the server is in ERROR."""
    fault = InstanceFault(code=500, message=IS_DEAD, details=details, host=run.memory.source_host)
    actions.add_fault_in(connection, run.uuid, fault)
