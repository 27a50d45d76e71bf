"""Live migrations inside a cell that release 0.1.0 requested, whose memory had a format of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from causeway.clients.placement.types import AllocationRequest, RequestGroup
from causeway.clients.port_requests import ALLOCATION, PortRequest
from causeway.hardware.port_devices import requests_of
from causeway.model.block_device import BlockDevice
from causeway.model.host import CellMapping
from causeway.model.instance import Instance
from causeway.model.migration import LIVE_MIGRATION
from causeway.model.network import Vif
from causeway.model.operations import Operation
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import VmState
from causeway.moves.memory import AttachmentPair, MoveMemory
from causeway.scheduler.request import RequestedGroup, Selection
from causeway.store.cell import hosts, instances
from causeway.store.cells import Cells
from causeway.store.database import Database
from causeway.virt.live_guest import LiveSource, LiveTarget


@dataclass
class _Place:
    host: str
    node: str | None
    availability_zone: str | None
    ports: list[Vif] = field(default_factory=list)


@dataclass
class _LiveMemory:
    source_host: str
    source_node: str
    old_vm_state: VmState
    wanted_host: str | None = None
    forced: bool = False
    block_migration: bool | None = None
    disk_over_commit: bool | None = None
    may_leave_cell: bool = False
    event: str = "conductor_live_migrate_instance"
    group: RequestedGroup | None = None
    place: _Place | None = None
    connector: dict[str, object] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    source: LiveSource | None = None
    target: LiveTarget | None = None
    attachments: list[AttachmentPair] = field(default_factory=list)
    devices: list[BlockDevice] = field(default_factory=list)
    guest: GuestOutcome | None = None
    is_lost: bool = False


def is_of_0_1_0(operation: Operation) -> bool:
    return operation.recipe == "live_migration" and "source_cell" not in operation.data


def hosts_of(operation: Operation) -> set[str]:
    """The hosts that may hold something of the server for such a migration."""
    chosen = operation.data.get("place")
    return {operation.data["source_host"], *operation.data["refused"], *([chosen["host"]] if chosen else [])}


def memory_of(cells: Cells, operation: Operation) -> MoveMemory:
    """The memory of such a migration as this release has it. Raises ServerNotFound."""
    live = msgspec.convert(operation.data, _LiveMemory)
    cell, database = cells.of_server(operation.instance_uuid)
    instance = instances.get(database, operation.instance_uuid)
    ports = live.place.ports if live.place is not None else []
    return MoveMemory(
        migration_type=LIVE_MIGRATION,
        source_cell=cell.uuid,
        source_host=live.source_host,
        source_node=live.source_node,
        source_hypervisor=_node_of(database, live.source_host, instance),
        source_zone=instance.availability_zone,
        old_flavor=instance.flavor,
        new_flavor=instance.flavor,
        old_vm_state=live.old_vm_state,
        keeps_memory=True,
        requested_host=live.wanted_host,
        has_ports=bool(instance.network_info),
        has_port_devices=bool(requests_of(instance)),
        forced=live.forced,
        block_migration=live.block_migration,
        disk_over_commit=live.disk_over_commit,
        may_leave_cell=live.may_leave_cell,
        event=live.event,
        group=live.group,
        selection=_selection_of(database, cell, live.place) if live.place is not None else None,
        port_requests=[request for vif in ports if (request := _request_of(vif)) is not None],
        port_ids=[vif.id for vif in instance.network_info] if live.target is not None else [],
        connector=live.connector,
        bound_hosts=live.refused,
        live_source=live.source,
        live_target=live.target,
        attachments=live.attachments,
        live_devices=live.devices,
        guest=live.guest,
        is_lost=live.is_lost,
    )


def _node_of(database: Database, host: str, instance: Instance) -> str | None:
    node = next(iter(hosts.list_nodes(database, host=host)), None)
    return node.hypervisor_hostname if node is not None else instance.node


def _selection_of(database: Database, cell: CellMapping, place: _Place) -> Selection:
    node = next(iter(hosts.list_nodes(database, host=place.host)), None)
    mappings: dict[str, list[str]] = {}
    for vif in place.ports:
        allocation: Any = vif.profile.get(ALLOCATION) or {}
        by_group = {vif.id: allocation} if isinstance(allocation, str) else allocation
        mappings |= {group: [provider] for group, provider in by_group.items()}
    return Selection(
        host=place.host,
        node_uuid=node.uuid if node is not None else "",
        hypervisor_hostname=place.node or place.host,
        cell_uuid=cell.uuid,
        cell_name=cell.name,
        allocation_request=AllocationRequest({}, mappings),
        availability_zone=place.availability_zone or "",
    )


def _request_of(vif: Vif) -> PortRequest | None:
    """The request of a port, as far as its binding needs it: the names of its groups."""
    allocation: Any = vif.profile.get(ALLOCATION)
    if not allocation:
        return None
    if isinstance(allocation, str):
        return PortRequest(vif.id, [RequestGroup(vif.id)], is_single=True)
    return PortRequest(vif.id, [RequestGroup(group) for group in allocation])
