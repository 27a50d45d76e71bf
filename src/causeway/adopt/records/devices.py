"""What servers hold of their hosts: CPUs and memory of NUMA cells, and PCI devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from causeway.adopt.nova.objects import UnknownRecord, load
from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology, NUMACell, NUMATopology
from causeway.model.pci import InstancePCIRequest, PciDevice, PciDeviceStatus

_DEDICATED = "dedicated"


def held_topology(data: Any, host: NUMATopology | None, what: str) -> InstanceNUMATopology | None:
    """``host``: the cells of the server's host, whose CPUs it shares where it has none of its own. Raises UnknownRecord."""
    if data is None:
        return None
    shared = {cell.id: cell.cpuset for cell in (host.cells if host is not None else [])}
    try:
        return InstanceNUMATopology([_cell(each, shared) for each in data["cells"]])
    except (KeyError, TypeError, AttributeError) as failure:
        raise UnknownRecord(f"{what} has no known form: {failure!r}") from failure


def _cell(data: Mapping[str, Any], shared: Mapping[int, list[int]]) -> InstanceNUMACell:
    cpuset, pcpuset = sorted(data.get("cpuset") or []), sorted(data.get("pcpuset") or [])
    if data.get("cpu_policy") == _DEDICATED and not pcpuset:
        # Before Wallaby, the pinned CPUs were in the set of all.
        cpuset, pcpuset = [], cpuset
    return InstanceNUMACell(
        id=data["id"],
        cpuset=cpuset,
        pcpuset=pcpuset,
        memory=data["memory"],
        pagesize=data.get("pagesize"),
        cpu_policy=data.get("cpu_policy"),
        cpu_thread_policy=data.get("cpu_thread_policy"),
        cpu_pinning_raw={str(cpu): host for cpu, host in (data.get("cpu_pinning_raw") or {}).items()} or None,
        cpuset_reserved=sorted(data.get("cpuset_reserved") or []),
        shared_on=list(shared.get(data["id"], [])) if cpuset else [],
    )


def topology_of_host(text: str | None, what: str) -> NUMATopology | None:
    """The cells of a host, as far as guests share their CPUs. Raises UnknownRecord."""
    data = load(text, what)
    if data is None:
        return None
    try:
        return NUMATopology(
            [
                NUMACell(each["id"], sorted(each["cpuset"]), sorted(each.get("pcpuset") or []), each["memory"])
                for each in data["cells"]
            ]
        )
    except (KeyError, TypeError) as failure:
        raise UnknownRecord(f"{what} has no known form: {failure!r}") from failure


def pci_requests_of(data: Any, what: str) -> list[InstancePCIRequest]:
    """``data``: the list, or an object with it. Raises UnknownRecord."""
    listed = data.get("requests") if isinstance(data, dict) else data
    known = ("request_id", "count", "spec", "alias_name", "numa_policy", "requester_id")
    try:
        return [
            msgspec.convert({name: each[name] for name in known if each.get(name) is not None}, InstancePCIRequest)
            for each in listed or []
        ]
    except (AttributeError, TypeError, msgspec.ValidationError) as failure:
        raise UnknownRecord(f"{what} has no known form: {failure}") from failure


def pci_devices_of(rows: Iterable[Mapping[str, Any]], what: str) -> list[PciDevice]:
    """The devices that a server has, of its host's rows. Raises UnknownRecord."""
    return [
        PciDevice(
            address=row["address"],
            vendor_id=row["vendor_id"],
            product_id=row["product_id"],
            dev_type=row["dev_type"],
            numa_node=row["numa_node"],
            parent_addr=row["parent_addr"],
            label=row["label"],
            status=PciDeviceStatus.ALLOCATED,
            instance_uuid=row["instance_uuid"],
            request_id=row["request_id"],
            extra_info={name: str(value) for name, value in (load(row["extra_info"], what) or {}).items()},
        )
        for row in rows
        # One that was claimed by a move that has failed is not the guest's.
        if row["status"] == PciDeviceStatus.ALLOCATED
    ]
