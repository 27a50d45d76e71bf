"""Chooses PCI devices for a server's requests: single devices (computes) or counts of pools (the scheduler)."""

from __future__ import annotations

import copy
from collections.abc import Collection

from causeway.hardware.misfit import Misfit
from causeway.model.pci import (
    OF_ONE_DEVICE,
    InstancePCIRequest,
    PciDevice,
    PciDevicePool,
    PciDeviceStatus,
    PciDeviceType,
)

# The NUMA cells in which a device may be; None: any.
Cells = Collection[int] | None
# Only requests that name these kinds get them: whoever takes a physical function takes all its virtual functions.
_ONLY_BY_NAME = (PciDeviceType.SRIOV_PF, PciDeviceType.VDPA)


def take_devices(requests: list[InstancePCIRequest], devices: list[PciDevice], numa_cells: Cells) -> list[PciDevice]:
    """Returns copies of free devices for all requests, each with its request's id. Raises Misfit."""
    free = [device for device in devices if device.status == PciDeviceStatus.AVAILABLE]
    taken: list[PciDevice] = []
    for request in requests:
        suitable = [
            device
            for device in free
            if _fits(request, device.vendor_id, device.product_id, device.dev_type, device.extra_info)
            and _near(request, device.numa_node, numa_cells)
            and not _excluded(device, taken)
        ]
        suitable.sort(key=lambda device: (*_preference(device.numa_node, numa_cells), device.address))
        chosen: list[PciDevice] = []
        for device in suitable:
            if len(chosen) < request.count and not _excluded(device, taken + chosen):
                chosen.append(copy.copy(device))
        if len(chosen) < request.count:
            raise Misfit(f"free PCI devices {_name(request)}", request.count, len(chosen))
        for device in chosen:
            device.request_id = request.request_id
        taken += chosen
        addresses = {device.address for device in chosen}
        free = [device for device in free if device.address not in addresses]
    return taken


def take_from_pools(requests: list[InstancePCIRequest], pools: list[PciDevicePool], numa_cells: Cells) -> None:
    """Subtracts the devices of all requests from the pools. Raises Misfit, and then leaves the pools half changed."""
    for request in requests:
        suitable = [
            pool
            for pool in pools
            if _fits(request, pool.vendor_id, pool.product_id, pool.dev_type, pool.tags)
            and _near(request, pool.numa_node, numa_cells)
        ]
        free = sum(pool.count for pool in suitable)
        if free < request.count:
            raise Misfit(f"free PCI devices {_name(request)}", request.count, free)
        left = request.count
        for pool in sorted(suitable, key=lambda pool: _preference(pool.numa_node, numa_cells)):
            used = min(left, pool.count)
            pool.count -= used
            left -= used


def pools(devices: list[PciDevice]) -> list[PciDevicePool]:
    """Returns the numbers of free devices by kind."""
    found: dict[tuple[object, ...], PciDevicePool] = {}
    for device in devices:
        kind = (device.vendor_id, device.product_id, device.dev_type, device.numa_node, device.parent_addr)
        tags = {name: value for name, value in device.extra_info.items() if name not in OF_ONE_DEVICE}
        key = (*kind, *sorted(tags.items()))
        pool = found.setdefault(
            key,
            PciDevicePool(
                device.vendor_id,
                device.product_id,
                device.dev_type,
                device.numa_node,
                0,
                device.parent_addr,
                tags,
            ),
        )
        pool.count += device.status == PciDeviceStatus.AVAILABLE
    return list(found.values())


def _fits(request: InstancePCIRequest, vendor: str, product: str, dev_type: str, tags: dict[str, str]) -> bool:
    known = {**tags, "vendor_id": vendor, "product_id": product, "dev_type": dev_type}
    return any(
        all(known.get(key) == value for key, value in spec.items())
        and (dev_type not in _ONLY_BY_NAME or spec.get("dev_type") == dev_type)
        and (known.get("remote_managed") != "true" or spec.get("remote_managed") == "true")
        for spec in request.spec
    )


def _near(request: InstancePCIRequest, numa_node: int | None, numa_cells: Cells) -> bool:
    """Whether the request's NUMA policy accepts a device of this node.

    ``legacy`` (the default) also accepts devices whose node is unknown, ``required`` does not, ``preferred`` accepts all.
    ``socket`` is treated as ``required``, because it is unknown which cells share a socket.
    """
    if numa_cells is None or request.numa_policy == "preferred":
        return True
    if numa_node is None:
        return request.numa_policy in (None, "legacy")
    return numa_node in numa_cells


def _preference(numa_node: int | None, numa_cells: Cells) -> tuple[bool, bool]:
    # Servers without a NUMA topology take devices without a node first, and leave the others to servers with one.
    return (numa_cells is not None and numa_node not in numa_cells, numa_cells is None and numa_node is not None)


def _excluded(device: PciDevice, taken: list[PciDevice]) -> bool:
    """Whether a taken device excludes this one: a physical function and its virtual functions can't both be used."""
    return any(other.address == device.parent_addr or other.parent_addr == device.address for other in taken)


def _name(request: InstancePCIRequest) -> str:
    if request.requester_id is not None:
        kinds = sorted({spec.get("dev_type", "") for spec in request.spec})
        return f"({', '.join(kinds)}) for the network of port {request.requester_id}"
    return f"for alias {request.alias_name}" if request.alias_name else "of the requested kind"
