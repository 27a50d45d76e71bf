"""What a driver reports of its host, its guests and their disks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from causeway.model.numa import NUMACell
from causeway.model.pci import PciDevice
from causeway.model.states import PowerState


@dataclass
class HostFacts:
    """What a host is and has. Memory in MiB, disk in GiB."""

    hypervisor_hostname: str
    hypervisor_type: str
    hypervisor_version: int
    vcpus: int
    memory_mb: int
    local_gb: int
    cpu_info: dict[str, Any] = field(default_factory=dict)
    host_ip: str = "127.0.0.1"
    #: [architecture, hypervisor type, vm mode], as the ImagePropertiesFilter reads them
    supported_instances: list[list[str]] = field(default_factory=list)
    traits: list[str] = field(default_factory=list)
    uptime: str | None = None


@dataclass
class HostHardware:
    """All NUMA cells and PCI devices of a host. The configuration decides which of them guests may use.

    ``cells``: each lists all its CPUs in ``cpuset``.
    """

    cells: list[NUMACell] = field(default_factory=list)
    pci_devices: list[PciDevice] = field(default_factory=list)


@dataclass
class GuestFacts:
    """What this host really has of a server. Memory in MiB."""

    uuid: str
    #: None: the hypervisor knows no such guest
    power_state: PowerState | None
    vcpus: int = 0
    memory_mb: int = 0
    has_disks: bool = False
    has_stashed_disks: bool = False


@dataclass
class ExpectedDisk:
    """A local disk that the records of a server name. ``size_mb``: the guest must see at least so many MiB."""

    name: str
    size_mb: int


@dataclass
class DiskExport:
    """A disk as a file that can be sent. The file exists until the context that made it is left.

    ``size`` is the size of the file in bytes. ``is_kept``: the file itself is still needed afterwards, so nobody may move it.
    """

    name: str
    path: Path
    disk_format: str
    size: int
    #: set if the file holds only what differs from this image
    base_image_id: str | None = None
    #: for how many bytes of a real disk each byte stands: the files of simulated guests are small
    scale: float = 1.0
    is_kept: bool = False


def allocated_bytes(directory: Path) -> int:
    """How many bytes all files below a directory occupy on their file system; 0 if there is no such directory."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
