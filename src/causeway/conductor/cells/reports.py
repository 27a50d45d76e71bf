"""What a host may report of itself. A host may be compromised, and what it reports is read by everybody.

The scheduler, the lists of hypervisors, `causeway status` and drains read the records of all hosts at once: one value that can't
be read would fail them for every host. A report is therefore taken whole or not at all. The types below are the table of bounds:
generous for any real host, and such that sums, ratios and texts of thousands of hosts stay usable.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from causeway import errors
from causeway.model.certificates import CERTIFICATES_ENDING
from causeway.model.host import (
    ATTACHES_PORT_DEVICES,
    DISK_WORK,
    FAILED_BUILDS,
    FOLDERS_LACK,
    LIVE_MIGRATION_LACKS,
    OTHER_OWNER,
    REQUIRES_SIGNATURES,
    STORAGE,
    STORES_IMAGES,
)
from causeway.model.outcomes import HostReport
from causeway.model.pci import PciDeviceStatus, PciDeviceType
from causeway.model.states import PowerState
from causeway.virt.live_guest import LiveProgress

# bytes of JSON: of the record of a node, which every scheduler keeps, and of a host's PCI devices
LARGEST_NODE = 2**20
LARGEST_DEVICES = 4 * 2**20
# Levels of lists and objects inside of what a node may report freely.
DEEPEST = 8
# bytes: two such counters are added up before they are recorded in 64 bits
MOST_BYTES = 2**60

_Line = Annotated[str, Meta(max_length=255, pattern=r"\A[^\x00-\x1f\x7f]*\Z")]
_Name = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"\A[^\x00-\x1f\x7f]+\Z")]
_Word = Annotated[str, Meta(max_length=64)]
_Sentence = Annotated[str, Meta(max_length=4096)]
_Uuid = Annotated[str, Meta(pattern=r"\A[0-9a-fA-F-]{32,36}\Z")]
_NodeUuid = Annotated[str, Meta(pattern=r"\A[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")]
_Address = Annotated[str, Meta(max_length=39, pattern=r"\A[\w.:%-]*\Z")]
_Int32 = Annotated[int, Meta(ge=0, lt=2**31)]
_Few = Annotated[int, Meta(ge=0, le=2**17)]
# MiB or GiB
_Size = Annotated[int, Meta(ge=0, le=2**30)]
_Large = Annotated[int, Meta(ge=0, le=2**48)]
_Ratio = Annotated[float, Meta(ge=0, le=1e6)]
_Cpu = Annotated[int, Meta(ge=0, lt=2**16)]
_Cpus = Annotated[list[_Cpu], Meta(max_length=2**16)]
_NumaNode = Annotated[int, Meta(ge=-1, lt=2**12)]
_PciAddress = Annotated[str, Meta(pattern=r"\A[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\Z")]
_PciId = Annotated[str, Meta(pattern=r"\A[0-9a-fA-F]{1,4}\Z")]
_Tags = Annotated[dict[_Line, _Line], Meta(max_length=64)]


class _Certificate(msgspec.Struct):
    file: _Sentence
    subject: _Sentence
    # It is compared with the time now.
    ends: Annotated[datetime, Meta(tz=True)]


_Capabilities = msgspec.defstruct(
    "_Capabilities",
    [
        ("vcpus", _Few, 0),
        ("memory_mb", _Size, 0),
        ("hypervisor_type", _Word, ""),
        ("hypervisor_version", _Int32, 0),
        (LIVE_MIGRATION_LACKS, Annotated[list[_Sentence], Meta(max_length=100)] | None, None),
        (CERTIFICATES_ENDING, Annotated[list[_Certificate], Meta(max_length=100)] | None, None),
        (REQUIRES_SIGNATURES, bool, False),
        (STORAGE, _Line | None, None),
        (FAILED_BUILDS, _Few, 0),
        (DISK_WORK, _Few, 0),
        (FOLDERS_LACK, _Sentence | None, None),
        (OTHER_OWNER, _Sentence | None, None),
        (STORES_IMAGES, bool, False),
        ("stands_still_when_live", bool, False),
        ("supports_live_migration", bool, False),
        (ATTACHES_PORT_DEVICES, bool, False),
        ("supports_migrate_to_same_host", bool, False),
        ("supports_saved_memory", bool, False),
        ("supports_suspended_moves", bool, False),
        ("supports_warm_copy", bool, False),
    ],
)


class _Pages(msgspec.Struct):
    size_kb: Annotated[int, Meta(ge=1, le=2**30)]
    total: _Large
    used: _Large


class _NumaCell(msgspec.Struct):
    id: Annotated[int, Meta(ge=0, lt=2**12)]
    cpuset: _Cpus
    pcpuset: _Cpus
    memory: _Size
    cpu_usage: _Int32
    memory_usage: _Int32
    pinned_cpus: _Cpus
    mempages: Annotated[list[_Pages], Meta(max_length=16)]
    siblings: Annotated[list[_Cpus], Meta(max_length=2**16)]


class _Topology(msgspec.Struct):
    cells: Annotated[list[_NumaCell], Meta(max_length=256)]


class _Pool(msgspec.Struct):
    vendor_id: _PciId
    product_id: _PciId
    dev_type: PciDeviceType
    numa_node: _NumaNode | None
    count: _Few
    parent_addr: _PciAddress | None
    tags: _Tags


class _Node(msgspec.Struct):
    # One way to write it, because it is compared with those of other hosts, and the database of Placement may ignore case.
    uuid: _NodeUuid
    hypervisor_hostname: _Name
    hypervisor_type: _Word
    # Negative ones have no end when they are written as texts.
    hypervisor_version: _Int32
    vcpus: _Few
    memory_mb: _Size
    local_gb: _Size
    running_vms: _Few
    cpu_info: dict[str, Any]
    host_ip: _Address | None
    supported_instances: Annotated[list[Annotated[list[_Word], Meta(max_length=3)]], Meta(max_length=64)]
    cpu_allocation_ratio: _Ratio
    ram_allocation_ratio: _Ratio
    disk_allocation_ratio: _Ratio
    uptime: _Line | None
    capabilities: _Capabilities  # type: ignore[valid-type]
    numa_topology: _Topology | None
    pci_stats: Annotated[list[_Pool], Meta(max_length=1024)]


class _Device(msgspec.Struct):
    address: _PciAddress
    vendor_id: _PciId
    product_id: _PciId
    dev_type: PciDeviceType
    numa_node: _NumaNode | None
    parent_addr: _PciAddress | None
    label: _Line | None
    status: PciDeviceStatus
    instance_uuid: _Uuid | None
    request_id: Annotated[str, Meta(max_length=36)] | None
    extra_info: _Tags


class _Report(msgspec.Struct):
    host: _Name
    service_version: _Int32
    node: _Node
    guests: Annotated[dict[_Name, PowerState], Meta(max_length=10_000)]
    pci_devices: Annotated[list[_Device], Meta(max_length=4096)]


def check(report: HostReport) -> None:
    """Raises ReportRefused if a host reports what can't be recorded, or what others could not read."""
    what = _problem_of(report)
    if what is not None:
        raise errors.ReportRefused(report.host[:255], what)


def check_bytes(what: str, *counts: int) -> None:
    """Raises ReportRefused if the progress of a transfer is counted in numbers that no transfer has. ``what``: of which move."""
    for count in counts:
        if not 0 <= count <= MOST_BYTES:
            raise errors.ReportRefused(what[:255], f"{count} bytes of a transfer")


def check_live_progress(what: str, progress: LiveProgress) -> None:
    """As `check_bytes`."""
    check_bytes(what, *progress.bytes_of().values())


def _problem_of(report: HostReport) -> str | None:
    if report.node.host != report.host:
        return f"the node of host {report.node.host[:80]!r}"
    plain = msgspec.to_builtins(report, str_keys=True)
    for what, value, most in (
        ("node", plain["node"], LARGEST_NODE),
        ("devices", plain["pci_devices"], LARGEST_DEVICES),
    ):
        if _is_deeper(value, DEEPEST):
            return f"a {what} record that is deeper than {DEEPEST} levels"
        if (size := len(msgspec.json.encode(value))) > most:
            return f"{what} records of {size} bytes, more than {most}"
    try:
        msgspec.convert(plain, _Report, str_keys=True)
    except msgspec.ValidationError as error:
        return str(error)[:500]
    addresses = [device.address for device in report.pci_devices]
    return "a PCI device twice" if len(set(addresses)) < len(addresses) else None


def _is_deeper(value: Any, levels: int) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 0 or _is_deeper(each, levels - 1) for each in inside)
