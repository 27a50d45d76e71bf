"""Ports that need a PCI device of their server's host: SR-IOV, vDPA, and ports that a card manages itself.

An `InstancePCIRequest` with the port's id requests the device, as for devices of a flavor. The claimed device is reported to
the network service in the port's binding profile. Source: Compute admin guide, "SR-IOV"; Network API reference,
"Port bindings" (``binding:vnic_type``, ``binding:profile``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from causeway.hardware.pci_request import NUMA_POLICIES
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.pci import NO_PHYSICAL_NETWORK, InstancePCIRequest, PciDevice, PciDeviceType

# binding:vnic_type -> the kind of device that such a port needs
DEVICE_TYPES: dict[str, PciDeviceType] = {
    "direct": PciDeviceType.SRIOV_VF,
    "macvtap": PciDeviceType.SRIOV_VF,
    "virtio-forwarder": PciDeviceType.SRIOV_VF,
    "remote-managed": PciDeviceType.SRIOV_VF,
    "direct-physical": PciDeviceType.SRIOV_PF,
    "vdpa": PciDeviceType.VDPA,
}
REMOTE_MANAGED = "remote-managed"
PARENT = "parent_ifname"
# The keys of a binding profile that describe the device on its host.
PROFILE_KEYS = frozenset(
    {
        "pci_vendor_info",
        "pci_slot",
        "physical_network",
        "device_mac_address",
        "card_serial_number",
        "pf_mac_address",
        "vf_num",
    }
)
_OF_A_CARD = ("card_serial_number", "pf_mac_address", "vf_num")

Json = dict[str, Any]


def needs_device(vnic_type: str | None) -> bool:
    return vnic_type in DEVICE_TYPES


def without_devices(vifs: Iterable[Vif]) -> list[Vif]:
    """Returns the ports that are no device of a host, so that a guest keeps them while its memory travels."""
    return [vif for vif in vifs if not needs_device(vif.vnic_type)]


def of_devices(vifs: Iterable[Vif]) -> list[Vif]:
    """Returns the other ports."""
    return [vif for vif in vifs if needs_device(vif.vnic_type)]


def request_of(port: Mapping[str, Any], physical_network: str | None) -> InstancePCIRequest | None:
    """Returns the request of a port, given as the network service shows it; None if the port needs no device.

    ``physical_network``: that of the port's network; None: the network is tunnelled.
    """
    vnic_type = port.get("binding:vnic_type")
    if vnic_type not in DEVICE_TYPES:
        return None
    spec = {"dev_type": str(DEVICE_TYPES[vnic_type]), "physical_network": physical_network or NO_PHYSICAL_NETWORK}
    if vnic_type == REMOTE_MANAGED:
        spec["remote_managed"] = "true"
    profile = port.get("binding:profile") or {}
    if _is_true(profile.get("trusted", port.get("trusted"))):
        spec["trusted"] = "true"
    policy = port.get("numa_affinity_policy")
    return InstancePCIRequest(
        request_id=port["id"],
        count=1,
        spec=[spec],
        requester_id=port["id"],
        port_numa_policy=policy if policy in NUMA_POLICIES else None,
    )


def _is_true(value: object) -> bool:
    return str(value).lower() in ("true", "1", "yes", "on", "t", "y")


def requests_of(instance: Instance) -> list[InstancePCIRequest]:
    """Returns the requests of the server's ports, without what is specific to its present host."""
    return requests_of_ports({vif.id for vif in instance.network_info}, instance.pci_requests)


def requests_of_ports(port_ids: Collection[str], requests: Iterable[InstancePCIRequest]) -> list[InstancePCIRequest]:
    """As `requests_of`, for the given ports."""
    return [
        dataclasses.replace(
            request, spec=[{key: value for key, value in spec.items() if key != PARENT} for spec in request.spec]
        )
        for request in requests
        if request.requester_id in port_ids
    ]


def device_of(instance: Instance, port_id: str) -> PciDevice | None:
    """Returns the device that a server holds for one of its ports; None: it holds none."""
    if not any(request.requester_id == port_id for request in instance.pci_requests):
        return None
    return next((device for device in instance.pci_devices if device.request_id == port_id), None)


def passed_through(instance: Instance) -> list[PciDevice]:
    """Returns the devices that the guest gets directly, not for a port."""
    of_ports = {request.request_id for request in instance.pci_requests if request.requester_id is not None}
    return [device for device in instance.pci_devices if device.request_id not in of_ports]


def under(request: InstancePCIRequest, interface: str) -> InstancePCIRequest:
    """Returns the request limited to virtual functions of ``interface``, which provides the port's bandwidth."""
    return dataclasses.replace(request, spec=[{**spec, PARENT: interface} for spec in request.spec])


def profile_of(device: PciDevice) -> Json:
    """Returns the keys of a port's binding profile that describe its device."""
    network = device.extra_info.get("physical_network", NO_PHYSICAL_NETWORK)
    profile: Json = {
        "pci_vendor_info": f"{device.vendor_id}:{device.product_id}",
        "pci_slot": device.address,
        "physical_network": None if network == NO_PHYSICAL_NETWORK else network,
    }
    if device.dev_type == PciDeviceType.SRIOV_PF and "mac_address" in device.extra_info:
        profile["device_mac_address"] = device.extra_info["mac_address"]
    if device.dev_type == PciDeviceType.SRIOV_VF and "card_serial_number" in device.extra_info:
        profile |= {key: device.extra_info[key] for key in _OF_A_CARD if key in device.extra_info}
        if "vf_num" in profile:
            profile["vf_num"] = int(profile["vf_num"])
    return profile


def with_device(profile: Mapping[str, Any], device: PciDevice | None) -> Json:
    """Returns the binding profile with another device; None: without one. Keys that describe no device stay."""
    bare = {key: value for key, value in profile.items() if key not in PROFILE_KEYS}
    return bare if device is None else bare | profile_of(device)


def named(vifs: Iterable[Vif], devices: Iterable[PciDevice]) -> list[Vif]:
    """Returns the ports of a server as bound to a host on which it has these devices."""
    by_port = {device.request_id: device for device in devices}
    return [
        dataclasses.replace(vif, profile=with_device(vif.profile, by_port.get(vif.id)))
        if needs_device(vif.vnic_type)
        else vif
        for vif in vifs
    ]


def with_policy(requests: Iterable[InstancePCIRequest], of_flavor: str | None) -> list[InstancePCIRequest]:
    """Returns the requests with their NUMA policies: the port's own, otherwise the flavor's."""
    return [
        dataclasses.replace(request, numa_policy=request.port_numa_policy or of_flavor or None) for request in requests
    ]
