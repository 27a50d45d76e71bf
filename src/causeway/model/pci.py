"""PCI devices of hosts, and what servers ask for. Names as in the field."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class PciDeviceStatus(StrEnum):
    AVAILABLE = "available"
    CLAIMED = "claimed"
    ALLOCATED = "allocated"
    # Its physical function is in use, or one of its virtual functions.
    UNAVAILABLE = "unavailable"


class PciDeviceType(StrEnum):
    STANDARD = "type-PCI"
    SRIOV_PF = "type-PF"
    SRIOV_VF = "type-VF"


@dataclass
class PciDevice:
    """A device that may be given to guests. ``address``: ``0000:81:00.0``; ids are four hexadecimal digits.

    ``request_id`` names the request of the server that it serves.
    """

    address: str
    vendor_id: str
    product_id: str
    dev_type: str = PciDeviceType.STANDARD
    numa_node: int | None = None
    parent_addr: str | None = None
    label: str | None = None
    status: str = PciDeviceStatus.AVAILABLE
    instance_uuid: str | None = None
    request_id: str | None = None
    # Further properties from [pci] device_spec (physical_network, ...).
    extra_info: dict[str, str] = field(default_factory=dict)


@dataclass
class InstancePCIRequest:
    """``count`` devices, each fitting one of ``spec`` (vendor_id, product_id, dev_type, ...)."""

    request_id: str
    count: int
    spec: list[dict[str, str]]
    alias_name: str | None = None
    numa_policy: str | None = None


@dataclass
class PciDevicePool:
    """How many devices of one kind a host has free: what the scheduler knows of them."""

    vendor_id: str
    product_id: str
    dev_type: str
    numa_node: int | None
    count: int
    parent_addr: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
