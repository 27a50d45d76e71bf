"""Fills a cloud with hosts and servers that are records only: written in bulk to the tables, not built one by one.

Hosts are in their cell (service, compute node), in the API database (host mapping, aggregate), in Placement (provider,
inventories, traits) and, if they are to have a compute service, on disk (the id that it reads). Servers are running in the
records: mapping, request spec, instance with a port, disk and create action in their cell, allocations in Placement. Each host
gets as many as the others; those with a compute service none where there are others, so that these are the best for whatever is
asked for.
"""

from __future__ import annotations

import random
import uuid as uuids
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.host import ComputeNode, Service
from causeway.model.instance import Instance, InstanceAction
from causeway.model.network import FixedIp, Vif
from causeway.model.states import PowerState, VmState
from causeway.scheduler.request import RequestSpec
from causeway.store.api import mappings
from causeway.store.api_tables import AggregateHosts, HostMappings
from causeway.store.cell import actions, block_devices, instances
from causeway.store.cell import hosts as host_records
from causeway.store.database import Database, utcnow
from causeway.virt.simulated import SimulatedDriver

ROWS = 1000
# What the hosts are made with; the same as SimulatedDriver's.
RATIOS = {"VCPU": 4.0, "MEMORY_MB": 1.0, "DISK_GB": 1.0}


@dataclass
class Owner:
    user_id: str
    project_id: str


@dataclass
class Cell:
    name: str
    uuid: str
    database: Database
    # host -> uuid of its node and provider
    nodes: dict[str, str]


def make_hosts(
    api: Database,
    placement: sa.Engine,
    cell: Cell,
    state: Path,
    aggregate_id: int,
    computes: Sequence[str] | None = None,
) -> None:
    """The hosts of a cell; ``cell.nodes`` names them. ``computes``: those that are to have a compute service; None: all."""
    now = utcnow()
    facts = None
    services, nodes = [], []
    for host, node_uuid in cell.nodes.items():
        directory = state / "hosts" / host
        if computes is None or host in computes:
            directory.mkdir(parents=True)
            (directory / "compute_id").write_text(node_uuid)
        if facts is None:
            facts = SimulatedDriver(host, directory).host_facts()
        service = Service(str(uuids.uuid4()), host, "nova-compute", "compute", last_seen_up=now, created_at=now)
        services.append(host_records.SERVICE.to_row(service))
        node = ComputeNode(
            uuid=node_uuid,
            host=host,
            hypervisor_hostname=host,
            hypervisor_type=facts.hypervisor_type,
            hypervisor_version=facts.hypervisor_version,
            vcpus=facts.vcpus,
            memory_mb=facts.memory_mb,
            local_gb=facts.local_gb,
            cpu_info=facts.cpu_info,
            supported_instances=facts.supported_instances,
            cpu_allocation_ratio=RATIOS["VCPU"],
        )
        nodes.append(host_records.NODE.to_row(node) | {"created_at": now})
    assert facts is not None
    _insert(cell.database.engine, host_records.SERVICES, services)
    _insert(cell.database.engine, host_records.NODES, nodes)
    _insert(api.engine, HostMappings.__table__, [{"host": host, "cell_uuid": cell.uuid} for host in cell.nodes])
    members = [{"aggregate_id": aggregate_id, "host": host} for host in cell.nodes]
    _insert(api.engine, AggregateHosts.__table__, members)
    totals = {"VCPU": facts.vcpus, "MEMORY_MB": facts.memory_mb, "DISK_GB": facts.local_gb}
    _make_providers(placement, cell.nodes, totals, {"COMPUTE_NODE", *facts.traits})


def _make_providers(placement: sa.Engine, nodes: dict[str, str], totals: dict[str, int], traits: set[str]) -> None:
    tables = _Placement(placement)
    providers = [{"uuid": uuid, "name": host, "generation": 1} for host, uuid in nodes.items()]
    _insert(placement, tables.resource_providers, providers)
    with placement.begin() as connection:
        table = tables.resource_providers
        # Each is its own root.
        connection.execute(table.update().where(table.c.root_provider_id.is_(None)).values(root_provider_id=table.c.id))
    ids = tables.ids("resource_providers", "uuid")
    classes, known = tables.ids("resource_classes", "name"), tables.ids("traits", "name")
    common = {"reserved": 0, "min_unit": 1, "step_size": 1}
    inventories = [
        common
        | {
            "resource_provider_id": ids[uuid],
            "resource_class_id": classes[name],
            "total": total,
            "max_unit": total,
            "allocation_ratio": RATIOS[name],
        }
        for uuid in nodes.values()
        for name, total in totals.items()
    ]
    _insert(placement, tables.inventories, inventories)
    have = [
        {"resource_provider_id": ids[uuid], "trait_id": known[trait]} for uuid in nodes.values() for trait in traits
    ]
    _insert(placement, tables.resource_provider_traits, have)


def make_servers(
    api: Database,
    placement: sa.Engine,
    cell: Cell,
    owner: Owner,
    others: Owner,
    number: int,
    image_id: str,
    flavor: Flavor,
    hosts: Sequence[str] | None = None,
) -> None:
    """``number`` running servers in a cell: half of them ``owner``'s, made in the last 100 days. ``hosts`` None: on all."""
    dice, now = random.Random(f"{cell.name} {flavor.name}"), utcnow()
    hosts = hosts or list(cell.nodes)
    made = [
        _server(
            dice,
            n,
            cell,
            hosts[n % len(hosts)],
            owner if n % 2 else others,
            image_id,
            flavor,
            now - timedelta(seconds=dice.uniform(0, 8_640_000)),
        )
        for n in range(number)
    ]
    rows = [
        mappings.MAPPER.to_row(
            mappings.InstanceMapping(
                one.uuid, one.project_id, one.user_id, one.created_at or now, cell.uuid, deleted=False
            )
        )
        for one in made
    ]
    _insert(api.engine, mappings.TABLE, rows)
    specs = [
        RequestSpec(one.uuid, one.project_id, one.user_id, one.flavor, availability_zone=None).to_persist()
        for one in made
    ]
    _insert(api.engine, mappings.SPECS, [{"instance_uuid": spec["instance_uuid"], "spec": spec} for spec in specs])
    engine = cell.database.engine
    _insert(engine, instances.TABLE, [instances.row_of(one) for one in made])
    _insert(engine, instances.TAGS, [{"resource_id": one.uuid, "tag": "benchmark"} for one in made])
    disks = [
        block_devices.MAPPER.to_row(
            BlockDevice(
                str(uuids.uuid4()),
                one.uuid,
                "image",
                "local",
                boot_index=0,
                device_name="/dev/vda",
                image_id=image_id,
                delete_on_termination=True,
            )
        )
        | {"deleted": False}
        for one in made
    ]
    _insert(engine, block_devices.TABLE, disks)
    done = [
        actions.ACTION.to_row(
            InstanceAction(
                "create",
                one.uuid,
                f"req-{uuids.uuid4()}",
                one.user_id,
                one.project_id,
                start_time=one.created_at or now,
            )
        )
        for one in made
    ]
    _insert(engine, actions.ACTIONS, done)
    _make_allocations(placement, cell, made)


def _server(
    dice: random.Random, number: int, cell: Cell, host: str, owner: Owner, image_id: str, flavor: Flavor, made: datetime
) -> Instance:
    return Instance(
        uuid=str(uuids.UUID(int=dice.getrandbits(128), version=4)),
        project_id=owner.project_id,
        user_id=owner.user_id,
        display_name=f"{cell.name}-{number}",
        hostname=f"{cell.name}-{number}",
        flavor=replace(flavor),
        host=host,
        node=host,
        availability_zone="nova",
        vm_state=VmState.ACTIVE,
        power_state=PowerState.RUNNING,
        image_ref=image_id,
        metadata={"role": "benchmark", "number": str(number)},
        tags=["benchmark"],
        network_info=[
            Vif(
                id=str(uuids.UUID(int=dice.getrandbits(128), version=4)),
                address=f"fa:16:3e:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}",
                network_id=str(uuids.UUID(int=1)),
                network_label="network",
                fixed_ips=[
                    FixedIp(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "subnet", cidr="10.0.0.0/8")
                ],
                active=True,
            )
        ],
        launched_at=made,
        created_at=made,
        updated_at=made,
    )


def _make_allocations(placement: sa.Engine, cell: Cell, made: Sequence[Instance]) -> None:
    tables = _Placement(placement)
    for table, column in ((tables.projects, "project_id"), (tables.users, "user_id")):
        there = tables.ids(table.name, "external_id")
        wanted = {str(getattr(one, column)) for one in made} - there.keys()
        _insert(placement, table, [{"external_id": one} for one in wanted])
    projects, users = tables.ids("projects", "external_id"), tables.ids("users", "external_id")
    consumers = [
        {"uuid": one.uuid, "project_id": projects[one.project_id], "user_id": users[one.user_id], "generation": 1}
        for one in made
    ]
    _insert(placement, tables.consumers, consumers)
    providers, classes = tables.ids("resource_providers", "uuid"), tables.ids("resource_classes", "name")
    allocations = [
        {
            "resource_provider_id": providers[cell.nodes[str(one.host)]],
            "consumer_id": one.uuid,
            "resource_class_id": classes[name],
            "used": amount,
        }
        for one in made
        for name, amount in (
            ("VCPU", one.flavor.vcpus),
            ("MEMORY_MB", one.flavor.memory_mb),
            ("DISK_GB", one.flavor.root_gb),
        )
    ]
    _insert(placement, tables.allocations, allocations)


class _Placement:
    """Its tables, as its own migrations made them."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._known = sa.MetaData()
        self._known.reflect(engine)

    def __getattr__(self, name: str) -> sa.Table:
        return self._known.tables[name]

    def ids(self, table: str, column: str) -> dict[str, int]:
        found = self._known.tables[table]
        with self._engine.connect() as connection:
            return {row[0]: row[1] for row in connection.execute(sa.select(found.c[column], found.c.id))}


def _insert(engine: sa.Engine, table: Any, rows: Iterable[dict[str, Any]]) -> None:
    rows = list(rows)
    with engine.begin() as connection:
        for first in range(0, len(rows), ROWS):
            connection.execute(table.insert(), rows[first : first + ROWS])
