"""Maps a server again to the cell and host where its only guest and disks are, if an administrator asks for it by name.

For a server that nobody can reach (its mapping was lost, or names a cell without it, because the API database lost the end of
its log) while its guest runs. All hosts are checked first. If anything is in two places, if somebody may work on the server, or
if a host or a database does not answer, nothing is done: a guess could give the server's name to the wrong one of two copies.

The steps, which may be repeated: the record in the cell gets the host and is made visible, other records are hidden, and the
mapping is written (with a request spec, if that was lost, too). Then what follows is fixed: allocations and orphaned copies.
"""

from __future__ import annotations

import time

from causeway import errors
from causeway.audit import fixes
from causeway.audit.checks import run_checks
from causeway.audit.gather import gather
from causeway.audit.mapped import mapping_of
from causeway.audit.services import AuditServices
from causeway.audit.snapshot import Record, Snapshot
from causeway.model.audit import Report
from causeway.model.host import CellMapping
from causeway.model.states import MOVE_TASKS, PowerState, VmState
from causeway.store.api import mappings
from causeway.store.cell import hosts as host_records
from causeway.store.cell import instances
from causeway.store.database import utcnow

# Fixes that follow from the mapping, and delete nothing that is in use.
FOLLOWS = frozenset({"set_allocation", "delete_allocation", "set_hidden", "delete_copy", "complete_mapping"})
ROUNDS = 3


def map_server(services: AuditServices, *, uuid: str, cell: str, host: str) -> Report:
    """Maps the server; reports what was fixed of it, and what still does not fit.

    Raises Conflict if the server must not be mapped there, BadRequest if there is no such cell.
    """
    began, started = utcnow(), time.monotonic()
    snapshot = gather(services, stale_after=float(services.conf.long_rpc_timeout), bindings_of={uuid})
    home = _find_cell(snapshot, cell)
    power_state = _only_place(snapshot, uuid, home, host)
    record = _record(snapshot, uuid, home)
    _write(services, snapshot, record, host, power_state)
    report = Report(started_at=began)
    for _round in range(ROUNDS):
        snapshot = gather(services, stale_after=float(services.conf.long_rpc_timeout), bindings_of={uuid})
        found = [each for each in run_checks(snapshot) if each.server == uuid]
        fixed = fixes.apply(services, [each for each in found if each.fix is not None and each.fix.action in FOLLOWS])
        report.fixed += fixed
        report.disagreements = [each for each in found if each not in fixed]
        if not fixed:
            break
    report.unreached, report.seconds = snapshot.unreached, round(time.monotonic() - started, 3)
    return report


def _find_cell(snapshot: Snapshot, name: str) -> CellMapping:
    found = next((cell for cell in snapshot.cells.values() if name in (cell.name, cell.uuid)), None)
    if found is None:
        raise errors.BadRequest(f"There is no cell {name}.")
    return found


def _only_place(snapshot: Snapshot, uuid: str, cell: CellMapping, host: str) -> PowerState | None:
    """The power state of the server's guest (None: the host only has disks). Raises Conflict unless all is on the host."""
    silent = sorted(name for name, state in snapshot.hosts.items() if state.contents is None)
    if silent or snapshot.unreached or snapshot.down_cells:
        raise errors.Conflict(
            "Some hosts or services do not answer, and may have a second guest or disk of the server.",
            details=", ".join([*silent, *snapshot.unreached, *sorted(snapshot.down_cells)]),
        )
    if uuid in snapshot.build_requests:
        raise errors.Conflict(f"Server {uuid} is still being built.")
    if snapshot.movement(uuid) is not None:
        raise errors.Conflict(f"Server {uuid} has a move that has not ended: let it end, confirm or revert it first.")
    places, stashed = set(), set()
    for name, state in snapshot.hosts.items():
        contents = state.contents
        if contents is None:
            continue
        if uuid in contents.guests or uuid in contents.disks:
            places.add(name)
        if uuid in contents.stashed:
            stashed.add(name)
    if stashed:
        raise errors.Conflict(
            f"Server {uuid} has disks that a move stashed: this command can't know which disks are the right ones.",
            details=", ".join(sorted(stashed)),
        )
    if places != {host} or snapshot.hosts[host].cell_uuid != cell.uuid:
        there = ", ".join(f"{name} ({snapshot.cell_name(snapshot.hosts[name].cell_uuid)})" for name in sorted(places))
        raise errors.Conflict(
            f"The only guest and disks of server {uuid} must be on {host} in {cell.name}; they are on {there or 'no host'}."
        )
    contents = snapshot.hosts[host].contents
    return contents.guests.get(uuid) if contents is not None else None


def _record(snapshot: Snapshot, uuid: str, cell: CellMapping) -> Record:
    found = next((each for each in snapshot.records.get(uuid, []) if each.cell_uuid == cell.uuid), None)
    if found is None:
        raise errors.Conflict(f"{cell.name} has no record of server {uuid}: restore it from a backup first.")
    if found.task_state is not None and found.task_state not in MOVE_TASKS:
        raise errors.Conflict(f"Somebody works on server {uuid}: its task state is {found.task_state.value}.")
    return found


def _write(
    services: AuditServices, snapshot: Snapshot, record: Record, host: str, power_state: PowerState | None
) -> None:
    uuid, database = record.uuid, services.cells.database(record.cell_uuid)
    node = next(iter(host_records.list_nodes(database, host=host)))
    changes = {"host": host, "node": node.hypervisor_hostname, "hidden": False, "closed_by": None}
    changes |= {"power_state": power_state or PowerState.SHUTDOWN}
    if record.task_state is not None or record.vm_state is VmState.RESIZED:
        # They are of a move that is not known any more: the server's state follows its guest.
        runs = power_state is PowerState.RUNNING
        changes |= {"task_state": None, "vm_state": VmState.ACTIVE if runs else VmState.STOPPED}
        changes |= {"migration_context": None, "old_flavor": None, "new_flavor": None, "old_vm_state": None}
    instances.set_place(database, uuid, **changes)
    for other in snapshot.records.get(uuid, []):
        if other.cell_uuid != record.cell_uuid:
            instances.set_hidden(services.cells.database(other.cell_uuid), uuid, True)
    mapping, spec = mapping_of(database, instances.get(database, uuid), record.cell_uuid)
    known = snapshot.mappings.get(uuid)
    with services.api.write() as connection:
        mappings.map_in(connection, mapping, expected=known.cell_uuid if known is not None else None)
        mappings.save_spec_if_missing_in(connection, uuid, spec)
