"""NUMA: what hosts have, what servers request, and what they hold. Names as in Nova.

A host's cell counts what its guests hold. A server's cell has some of the server's CPUs (numbered from 0 across its cells) and
memory. Once it is claimed, ``id`` is the host's cell, and ``cpu_pinning_raw`` has the host's CPU for each pinned one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# Page sizes that leave the choice to the host.
MEMPAGES_SMALL = -1
MEMPAGES_LARGE = -2
MEMPAGES_ANY = -3


@dataclass
class NUMAPagesTopology:
    """Memory pages of one size (KiB) in a host's cell."""

    size_kb: int
    total: int
    used: int = 0

    @property
    def free(self) -> int:
        return self.total - self.used


@dataclass
class NUMACell:
    """A cell of a host: CPUs for shared guests, CPUs for pinned ones, memory in MiB.

    ``siblings``: the threads of each core, for cores with more than one.
    """

    id: int
    cpuset: list[int]
    pcpuset: list[int]
    memory: int
    cpu_usage: int = 0
    memory_usage: int = 0
    pinned_cpus: list[int] = field(default_factory=list)
    mempages: list[NUMAPagesTopology] = field(default_factory=list)
    siblings: list[list[int]] = field(default_factory=list)

    @property
    def free_pcpus(self) -> list[int]:
        held = set(self.pinned_cpus)
        return [cpu for cpu in self.pcpuset if cpu not in held]


@dataclass
class NUMATopology:
    """A host's cells."""

    cells: list[NUMACell] = field(default_factory=list)


@dataclass
class InstanceNUMACell:
    """A cell of a server: shared CPUs, pinned CPUs, memory in MiB, page size in KiB (None: ordinary memory)."""

    id: int
    cpuset: list[int]
    pcpuset: list[int]
    memory: int
    pagesize: int | None = None
    cpu_policy: str | None = None
    cpu_thread_policy: str | None = None
    # The server's CPU, as text (keys of JSON are) -> the host's.
    cpu_pinning_raw: dict[str, int] | None = None
    # Threads beside pinned CPUs that no other guest may have (thread policy "isolate").
    cpuset_reserved: list[int] = field(default_factory=list)
    # The host's CPUs that the shared ones may run on.
    shared_on: list[int] = field(default_factory=list)

    @property
    def cpu_pinning(self) -> dict[int, int]:
        return {int(cpu): host for cpu, host in (self.cpu_pinning_raw or {}).items()}

    @property
    def held_cpus(self) -> set[int]:
        """The host's CPUs that no other guest may have."""
        return {*self.cpu_pinning.values(), *self.cpuset_reserved}


@dataclass
class InstanceNUMATopology:
    """A server's cells: requested, or claimed on a host."""

    cells: list[InstanceNUMACell] = field(default_factory=list)

    @property
    def num_pcpus(self) -> int:
        return sum(len(cell.pcpuset) for cell in self.cells)

    @property
    def num_vcpus(self) -> int:
        return sum(len(cell.cpuset) for cell in self.cells)
