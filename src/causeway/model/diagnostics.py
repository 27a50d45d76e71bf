"""A hypervisor's counters of a running guest. Source: Compute API reference, "Show Server Diagnostics".

A value is None if the hypervisor does not report it.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class CpuDiagnostics:
    """``time``: nanoseconds for which the CPU has run."""

    id: int
    time: int | None = None


@dataclass
class NicDiagnostics:
    """``device``: its name on the host. Octets and packets since the guest was started there."""

    device: str
    mac_address: str
    rx_octets: int | None = None
    rx_errors: int | None = None
    rx_drop: int | None = None
    rx_packets: int | None = None
    tx_octets: int | None = None
    tx_errors: int | None = None
    tx_drop: int | None = None
    tx_packets: int | None = None


@dataclass
class DiskDiagnostics:
    """``device``: its name in the guest's definition, ``vda``."""

    device: str
    read_bytes: int | None = None
    read_requests: int | None = None
    write_bytes: int | None = None
    write_requests: int | None = None


@dataclass
class Diagnostics:
    """Memory in MiB."""

    #: one of the API's words: libvirt, xenapi, vmwareapi, ironic, hyperv
    driver: str
    hypervisor: str
    hypervisor_os: str
    memory_maximum: int | None
    memory_used: int | None
    cpus: list[CpuDiagnostics] = field(default_factory=list)
    nics: list[NicDiagnostics] = field(default_factory=list)
    disks: list[DiskDiagnostics] = field(default_factory=list)
