"""What a server is doing, and where its records say that it is."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.adopt.check.servers import Around, ServerRecords
from causeway.adopt.nova import NovaCell, NovaCloud
from causeway.adopt.nova.database import Row
from causeway.adopt.nova.narrow import UUIDS
from causeway.model.states import VmState

# A code, and the sentence of the finding.
Said = Iterator[tuple[str, str]]

_WITHOUT_HOST = (VmState.SHELVED_OFFLOADED, VmState.ERROR, VmState.SOFT_DELETED, VmState.BUILDING)


def of_copy(cloud: NovaCloud, cell: NovaCell, row: Row, mapping: Row | None) -> tuple[str, str]:
    """What is wrong with a record of `causeway.adopt.check.servers.copies`."""
    if mapping is None:
        if row["hidden"]:
            return "hidden_copy", f"The record in {cell.name} is hidden, and the server has no mapping."
        return "mapping_missing", f"{cell.name} has its record, and no mapping names a cell."
    if mapping["cell_id"] is None:
        return "building", f"{cell.name} has its record, and its mapping names no cell yet."
    if mapping["cell_id"] == cell.row_id:
        return "hidden", f"Its record in {cell.name} is hidden."
    mapped = cloud.cell_of(mapping["cell_id"])
    if mapped is None:
        return "mapping_cell", f"{cell.name} has its record, and it is mapped to a cell that does not exist."
    if row["hidden"]:
        return "hidden_copy", f"{cell.name} has a hidden copy; its record in {mapped.name} is the one that counts."
    if mapped.database.rows_of(UUIDS, "uuid", [row["uuid"]]):
        return "duplicate", f"{cell.name} and {mapped.name} have records of it; it is mapped to {mapped.name}."
    return "mapping_cell", f"{cell.name} has its record, and it is mapped to {mapped.name}, which has none."


def of_state(server: ServerRecords, _around: Around) -> Said:
    """What is under way has to end before, and some states are not what they were."""
    row = server.row
    state = row["vm_state"]
    if row["task_state"]:
        yield "task", f"Its task is {row['task_state']}."
    if state == VmState.BUILDING or server.has_request:
        yield "building", "It is being built."
    elif state == VmState.RESIZED:
        yield "verify_resize", "It waits for confirm or revert of its resize."
    elif server.moving is not None:
        moving = server.moving
        yield "migration_in_progress", f"Its migration {moving.uuid} ({moving.migration_type}) is {moving.status}."
    if state == VmState.SUSPENDED:
        yield "suspended", "Its memory is in a file of libvirt's: it is not moved until it was resumed."
    elif state == VmState.RESCUED:
        yield "rescued", "It is in its rescue system."
    elif state not in {*VmState}:
        yield "state_unknown", f"Its state is {state or 'empty'}."


def of_host(server: ServerRecords, around: Around) -> Said:
    """The host is known in the cell, and its node is the server's."""
    row, name = server.row, server.host
    if name is None:
        if row["vm_state"] not in _WITHOUT_HOST and not row["task_state"]:
            yield "host_none", f"It is {row['vm_state']}, and its record names no host."
        return
    records = around.hosts.of(server.cell, name)
    nodes = records.nodes if records is not None else []
    node = next((each for each in nodes if each["hypervisor_hostname"] == row["node"]), None)
    if node is None:
        yield (
            "host_unknown",
            f"{server.cell.name} has no compute node {row['node'] or 'without a name'} of host {name}.",
        )
    elif not around.hosts.is_mapped(server.cell, name):
        yield "host_unknown", f"Its host {name} is not mapped to {server.cell.name}."
    elif row["compute_id"] is not None and row["compute_id"] != node["id"]:
        yield "compute_id", f"Its record names compute node {row['compute_id']}; that of {name} is {node['id']}."


__all__ = ["Said", "of_copy", "of_host", "of_state"]
