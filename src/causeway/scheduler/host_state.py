"""The scheduler's knowledge of hosts: its source, how long it is used, and how one request sees it."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from causeway.clients.placement.types import Capacity, ProviderSummary
from causeway.hardware.fit import holding
from causeway.hardware.misfit import Misfit
from causeway.hardware.pci_fit import take_from_pools
from causeway.model.host import STORAGE, Aggregate, ComputeNode, Service
from causeway.model.numa import InstanceNUMATopology, NUMATopology
from causeway.model.pci import InstancePCIRequest, PciDevicePool
from causeway.scheduler.background import Background

# Seconds: if a service seems to be down, hosts are read again, but not more often than this.
LEAST_SECONDS_BETWEEN_LOOKS = 1.0
# Knowledge that is so many times older than usual, because there was no request for a while, is not used any more.
TOO_OLD = 3.0
# Hosts that stopped reporting within this share of the time after which they are down did so together; and lately, if that is
# no longer ago than so many of it.
TOGETHER, SILENT_LATELY = 0.5, 10.0
# The largest share of time for looking up many hosts: one for the cells, one for Placement.
SHARE = 0.02


@dataclass
class HostRecord:
    """A compute node with its service, as their cell's database has them."""

    cell_uuid: str
    cell_name: str
    node: ComputeNode
    service: Service
    cell_disabled: bool = False
    # Orders under way there that read or write whole disks, when it reported last; and builds that failed there lately.
    num_io_ops: int = 0
    failed_builds: int = 0


class HostSource(Protocol):
    """Where hosts, aggregates and servers are looked up."""

    def host_states(self, provider_uuids: set[str] | None) -> list[HostRecord]:
        """The compute nodes of all cells that answer, or only those with these uuids."""

    def silent_cells(self) -> list[str]:
        """The names of the cells that did not answer when `host_states` asked last."""

    def aggregates(self) -> list[Aggregate]:
        """All host aggregates."""

    def group_members(self, group_uuid: str) -> set[str]:
        """The servers of a group, including those without a host. Raises ServerGroupNotFound."""

    def group_hosts(self, members: set[str]) -> dict[str, set[str]]:
        """Host -> members of a server group there; one that is being moved is on both hosts."""

    def instance_hosts(self, instance_uuids: set[str]) -> dict[str, str]:
        """Server uuid -> its host, for those that have one."""


@dataclass
class HostState:
    """One host as one request sees it. Aggregates are those the host is in."""

    record: HostRecord
    aggregates: list[Aggregate] = field(default_factory=list)
    # The numbers of Placement for the provider, which are newer than the node's own.
    capacity: dict[str, Capacity] = field(default_factory=dict)
    is_up: bool = True
    # The servers that this request has put here already.
    num_picked: int = 0
    # The node's NUMA cells and devices, with those that this request has given to servers here.
    numa_topology: NUMATopology | None = None
    pci_stats: list[PciDevicePool] = field(default_factory=list)

    @property
    def host(self) -> str:
        return self.record.node.host

    @property
    def node_uuid(self) -> str:
        return self.record.node.uuid

    @property
    def cell_uuid(self) -> str:
        return self.record.cell_uuid

    def shares(self, storage: str | None) -> bool:
        """Whether the host keeps guests' disks there."""
        return storage is not None and self.record.node.capabilities.get(STORAGE) == storage

    @property
    def num_instances(self) -> int:
        return self.record.node.running_vms + self.num_picked

    @property
    def num_io_ops(self) -> int:
        return self.record.num_io_ops + self.num_picked

    @property
    def free_vcpus(self) -> float:
        node = self.record.node
        return self._free("VCPU", node.vcpus * node.cpu_allocation_ratio - node.vcpus_used)

    @property
    def free_memory_mb(self) -> float:
        node = self.record.node
        return self._free("MEMORY_MB", node.memory_mb * node.ram_allocation_ratio - node.memory_mb_used)

    @property
    def free_disk_gb(self) -> float:
        node = self.record.node
        return self._free("DISK_GB", node.local_gb * node.disk_allocation_ratio - node.local_gb_used)

    def _free(self, resource_class: str, otherwise: float) -> float:
        known = self.capacity.get(resource_class)
        return otherwise if known is None else known.free

    def take(self, resources: dict[str, int]) -> None:
        """Counts a server that this request has just put here, so that the next one of the same request sees it."""
        self.num_picked += 1
        self.hold(resources)

    def hold(self, resources: dict[str, int]) -> None:
        """Counts the resources of a server that this or another request has put here."""
        for name, amount in resources.items():
            if name in self.capacity:
                known = self.capacity[name]
                self.capacity[name] = Capacity(known.capacity, known.used + amount)

    def take_hardware(self, numa_topology: InstanceNUMATopology | None, requests: list[InstancePCIRequest]) -> None:
        """Counts a server's NUMA cells and PCI devices, for this request only: does not change objects that others share."""
        if numa_topology is not None and self.numa_topology is not None:
            self.numa_topology = holding(self.numa_topology, [numa_topology])
        if requests:
            self.pci_stats = copy.deepcopy(self.pci_stats)
            cells = None if numa_topology is None else {cell.id for cell in numa_topology.cells}
            with suppress(Misfit):
                take_from_pools(requests, self.pci_stats, cells)

    def aggregate_values(self, key: str) -> set[str]:
        """All values that the host's aggregates have for a metadata key."""
        return {aggregate.metadata[key] for aggregate in self.aggregates if key in aggregate.metadata}

    def availability_zone(self, default: str) -> str:
        return next((a.availability_zone for a in self.aggregates if a.availability_zone), default)


@dataclass(frozen=True)
class KnownHosts:
    """All hosts as they were at one time (``loaded_at``, monotonic). ``of_host``: the aggregates by the host's name."""

    loaded_at: float = 0.0
    records: dict[str, HostRecord] = field(default_factory=dict)
    aggregates: list[Aggregate] = field(default_factory=list)
    of_host: dict[str, list[Aggregate]] = field(default_factory=dict)
    silent_cells: list[str] = field(default_factory=list)


class HostCache:
    """Hosts and aggregates, remembered for a while, so that a decision usually needs no query.

    A service is up or down by the time when it was last seen. Because a remembered time is older than the true one, a service
    that seems to be down is looked up again before a host is refused for it.

    More than ``many`` hosts are read again in the background, while requests use what is known. Requests wait only if that is
    several times too old, or was invalidated.
    """

    def __init__(
        self,
        source: HostSource,
        *,
        max_age: float,
        service_down_time: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC).replace(tzinfo=None),
        many: int = 100,
    ) -> None:
        """``max_age`` and ``service_down_time`` in seconds."""
        self._source = source
        self.max_age = max_age
        self.service_down_time = service_down_time
        self.now = now
        self._many = many
        self._lock = threading.Lock()
        self._loaded_at: float | None = None
        # Seconds until hosts are read again: longer if reading takes long, but before they would seem to be down.
        self._pause = 0.0
        self._looked_again_at = 0.0
        self._invalidations = 0
        self._known = KnownHosts()
        self._background = Background("scheduler-hosts")

    def invalidate(self) -> None:
        """Discards everything, because hosts, services, cells or aggregates have changed."""
        with self._lock:
            self._invalidate()

    def _invalidate(self) -> None:
        self._loaded_at = None
        self._invalidations += 1

    def close(self) -> None:
        """Waits until the reading in the background, if there is any, has ended."""
        self._background.wait()

    def known(self) -> KnownHosts:
        """The hosts of all cells; a new object whenever something was read again."""
        with self._lock:
            self._load_if_older_than(self.max_age)
            return self._known

    def aggregates(self) -> list[Aggregate]:
        return self.known().aggregates

    def silent_cells(self) -> list[str]:
        """The names of the cells whose hosts are not known because they did not answer."""
        with self._lock:
            return list(self._known.silent_cells)

    def look_again_unless_looked_since(self, moment: float) -> bool:
        """Discards knowledge from before ``moment`` (`time.monotonic`). Returns False if there is none that old."""
        with self._lock:
            if self._loaded_at is None or self._loaded_at >= moment:
                return False
            self._invalidate()
            return True

    def find(self, *, host: str, node: str | None = None) -> list[HostRecord]:
        """The compute nodes of a host; more than one only for special hypervisors."""
        with self._lock:
            self._load_if_older_than(self.max_age)
            found = self._find(host, node)
            if not found:
                self._load_if_older_than(LEAST_SECONDS_BETWEEN_LOOKS)
                found = self._find(host, node)
            return found

    def states(
        self,
        providers: dict[str, ProviderSummary] | None = None,
        *,
        without: Collection[str] = frozenset(),
        anew: bool = False,
    ) -> list[HostState]:
        """The hosts with these providers, or all but ``without`` (uuids), each as a new object that the request may change.

        ``anew``: reads them again, whatever is remembered.
        """
        with self._lock:
            self._load_if_older_than(self.max_age)
            known = self._known.records
            wanted = [uuid for uuid in (known if providers is None else providers) if uuid not in without]
            now = self.now()
            if any(uuid not in known for uuid in wanted):
                self._load_if_older_than(LEAST_SECONDS_BETWEEN_LOOKS)
            if anew:
                self._read_anew(set(wanted))
            else:
                self._look_again_at(
                    {uuid for uuid in wanted if uuid in known and not self.is_up(known[uuid].service, now)}
                )
            return [
                self.state_of(self._known, uuid, providers[uuid].resources if providers else {}, now)
                for uuid in wanted
                if uuid in self._known.records
            ]

    def look_again_at(self, node_uuids: set[str]) -> KnownHosts:
        """Reads hosts again that seem to be down, at most once a second."""
        with self._lock:
            self._look_again_at(node_uuids)
            return self._known

    def state_of(self, known: KnownHosts, node_uuid: str, capacity: dict[str, Capacity], now: datetime) -> HostState:
        record = known.records[node_uuid]
        return HostState(
            record=record,
            aggregates=known.of_host.get(record.node.host, []),
            capacity=dict(capacity),
            is_up=self.is_up(record.service, now),
            numa_topology=record.node.numa_topology,
            pci_stats=record.node.pci_stats,
        )

    def is_up(self, service: Service, now: datetime | None = None) -> bool:
        """Whether the service reported within the last ``service_down_time`` seconds and is not forced down."""
        if service.forced_down or service.last_seen_up is None:
            return False
        return ((now or self.now()) - service.last_seen_up).total_seconds() <= self.service_down_time

    def silent_together(self) -> list[str]:
        """The names of cells whose hosts, two or more, all stopped reporting at the same time, not long ago.

        Hosts do not fail together: it is what their reports go through.
        """
        with self._lock:
            records, now = list(self._known.records.values()), self.now()
        by_cell: dict[str, list[HostRecord]] = {}
        for record in records:
            if not (record.service.disabled or record.service.forced_down):
                by_cell.setdefault(record.cell_name, []).append(record)
        return sorted(name for name, hosts in by_cell.items() if self._fell_silent_together(hosts, now))

    def _fell_silent_together(self, hosts: list[HostRecord], now: datetime) -> bool:
        seen = [host.service.last_seen_up for host in hosts if host.service.last_seen_up is not None]
        if len(seen) < max(2, len(hosts)) or any(self.is_up(host.service, now) for host in hosts):
            return False
        is_recent = (now - max(seen)).total_seconds() <= SILENT_LATELY * self.service_down_time
        return is_recent and (max(seen) - min(seen)).total_seconds() <= TOGETHER * self.service_down_time

    def _find(self, host: str, node: str | None) -> list[HostRecord]:
        return [
            record
            for record in self._known.records.values()
            if record.node.host == host and node in (None, record.node.hypervisor_hostname, record.node.uuid)
        ]

    def _look_again_at(self, node_uuids: set[str]) -> None:
        now = time.monotonic()
        last = max(self._looked_again_at, self._loaded_at or 0.0)
        if node_uuids and now - last > LEAST_SECONDS_BETWEEN_LOOKS:
            self._read_anew(node_uuids)
            self._looked_again_at = now

    def _read_anew(self, node_uuids: set[str]) -> None:
        fresh = {record.node.uuid: record for record in self._source.host_states(node_uuids)}
        self._known = replace(self._known, records=self._known.records | fresh)

    def _load_if_older_than(self, seconds: float) -> None:
        now, loaded_at = time.monotonic(), self._loaded_at
        if loaded_at is not None and now - loaded_at <= max(seconds, self._pause):
            return
        is_usable = loaded_at is not None and now - loaded_at <= TOO_OLD * max(self.max_age, self._pause)
        if is_usable and len(self._known.records) > self._many:
            self._background.start(self._reload)
        else:
            self._known, self._loaded_at = self._read(now), now

    def _reload(self) -> None:
        now, invalidations = time.monotonic(), self._invalidations
        known = self._read(now)
        with self._lock:
            self._pause = min((time.monotonic() - now) / SHARE, self.service_down_time / 3)
            if self._invalidations == invalidations:
                self._known, self._loaded_at = known, now

    def _read(self, now: float) -> KnownHosts:
        records = {record.node.uuid: record for record in self._source.host_states(None)}
        silent = self._source.silent_cells()
        aggregates = self._source.aggregates()
        of_host: dict[str, list[Aggregate]] = {}
        for aggregate in aggregates:
            for host in aggregate.hosts:
                of_host.setdefault(host, []).append(aggregate)
        return KnownHosts(now, records, aggregates, of_host, silent)
