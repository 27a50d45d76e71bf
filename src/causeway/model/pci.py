"""PCI devices of hosts, and servers' requests for them. Names as in Nova."""

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
    VDPA = "vdpa"


# The tag ``physical_network`` of devices for networks that have none (JSON null in [pci] device_spec): tunnelled ones.
NO_PHYSICAL_NETWORK = ""
# Keys of extra_info that differ between devices of one kind. All others are properties of the kind.
OF_ONE_DEVICE = frozenset({"mac_address", "ifname", "vf_num", "pf_mac_address", "card_serial_number", "vdpa_device"})


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
    # Further properties: from [pci] device_spec (physical_network, ...), and from the hypervisor (parent_ifname, ...).
    extra_info: dict[str, str] = field(default_factory=dict)


@dataclass
class InstancePCIRequest:
    """``count`` devices, each fitting one of ``spec`` (vendor_id, product_id, dev_type, ...).

    ``requester_id``: the port that needs the device; None if the flavor does. ``port_numa_policy``: the port's own policy;
    ``numa_policy``: the one in force.
    """

    request_id: str
    count: int
    spec: list[dict[str, str]]
    alias_name: str | None = None
    numa_policy: str | None = None
    requester_id: str | None = None
    port_numa_policy: str | None = None


@dataclass
class PciDevicePool:
    """The number of free devices of one kind on a host, as the scheduler knows it."""

    vendor_id: str
    product_id: str
    dev_type: str
    numa_node: int | None
    count: int
    parent_addr: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
