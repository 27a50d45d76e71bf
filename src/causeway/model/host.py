"""Cells, hosts, services, aggregates."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from causeway.model import versions
from causeway.model.numa import NUMATopology
from causeway.model.pci import PciDevicePool

# A key of a compute node's capabilities: what its host lacks for live migrations, in sentences; None if not known yet.
LIVE_MIGRATION_LACKS = "live_migration_lacks"
# Another one: whether its host refuses orders that nobody signed.
REQUIRES_SIGNATURES = "requires_signatures"
# Which store the host makes new disks in; the same for all hosts that reach it.
STORAGE = "storage"
# Whether its host makes images of servers in that store, if the image service keeps its images there.
STORES_IMAGES = "stores_images"
# Whether its host detaches ports that are devices from guests that run, and attaches them.
ATTACHES_PORT_DEVICES = "supports_live_port_devices"
# Why its host can't write into its own folders, in a sentence; None if it can.
FOLDERS_LACK = "folders_lack"
# Why another compute service may own the guests of its host, in a sentence; None if it knows of none.
OTHER_OWNER = "other_owner"
# How many builds failed on its host since one succeeded, lately.
FAILED_BUILDS = "failed_builds"
# How many orders that read or write whole disks its host carries out.
DISK_WORK = "disk_work"
# The keys that change all the time. No verdict of a filter that is kept for long depends on them.
PASSING_CAPABILITIES = frozenset({FAILED_BUILDS, DISK_WORK})

CELL0_UUID = "00000000-0000-0000-0000-000000000000"


@dataclass
class CellMapping:
    uuid: str
    name: str
    transport_url: str
    database_connection: str
    disabled: bool = False
    id: int = 0

    @property
    def is_cell0(self) -> bool:
        return self.uuid == CELL0_UUID


@dataclass(frozen=True)
class HostMapping:
    """The cell of a host, and the uuid of its node; None if a release that did not record it made the mapping."""

    host: str
    cell_uuid: str
    node_uuid: str | None = None


@dataclass
class Service:
    """A service record of a cell. ``last_seen_up`` is written by the cell's conductor from the service's reports."""

    uuid: str
    host: str
    binary: str
    topic: str = ""
    version: int = versions.SERVICE
    disabled: bool = False
    disabled_reason: str | None = None
    forced_down: bool = False
    last_seen_up: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    id: int = 0


@dataclass
class ComputeNode:
    """A hypervisor: its uuid is the uuid of its resource provider in Placement. Memory in MiB, disk in GiB."""

    uuid: str
    host: str
    hypervisor_hostname: str
    hypervisor_type: str
    hypervisor_version: int
    vcpus: int
    memory_mb: int
    local_gb: int
    vcpus_used: int = 0
    memory_mb_used: int = 0
    local_gb_used: int = 0
    running_vms: int = 0
    cpu_info: dict[str, Any] = field(default_factory=dict)
    host_ip: str | None = None
    supported_instances: list[list[str]] = field(default_factory=list)
    cpu_allocation_ratio: float = 4.0
    ram_allocation_ratio: float = 1.0
    disk_allocation_ratio: float = 1.0
    uptime: str | None = None
    # Properties the ImagePropertiesFilter and ComputeCapabilitiesFilter compare with.
    capabilities: dict[str, Any] = field(default_factory=dict)
    # Including what servers and moves in progress hold there.
    numa_topology: NUMATopology | None = None
    pci_stats: list[PciDevicePool] = field(default_factory=list)
    created_at: datetime | None = None
    updated_at: datetime | None = None
    id: int = 0


@dataclass
class Aggregate:
    uuid: str
    name: str
    hosts: list[str] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None
    id: int = 0

    @property
    def availability_zone(self) -> str | None:
        return self.metadata.get("availability_zone")


@dataclass
class ServerGroup:
    uuid: str
    name: str
    project_id: str
    user_id: str
    policy: str
    rules: dict[str, Any] = field(default_factory=dict)
    members: list[str] = field(default_factory=list)
    created_at: datetime | None = None
    id: int = 0
