"""Bindings: where a port is, and how the host must connect it.

A port has at most one ACTIVE binding. A binding without a host has the host "" and the VIF type `unbound`.
"""

from typing import Any

from causeway.devcloud.bodies import Json
from causeway.devcloud.cloud import Cloud
from causeway.devcloud.switches import Backend
from causeway.devcloud.tables.network import (
    BRIDGE,
    FAILED,
    FUNCTION,
    SWITCH,
    UNBOUND,
    WHOLE_DEVICE,
    Network,
    Port,
    PortBinding,
)

OF_DEVICES = ("direct", "macvtap", "direct-physical", "virtio-forwarder", "vdpa", "remote-managed")
"""The vnic types of ports that are devices of the host."""


def on_host(port: Port, host: str) -> PortBinding | None:
    for row in port.bindings:
        if row.host == host and host:
            return row
    return None


def connect(cloud: Cloud, port: Port, row: PortBinding) -> None:
    """Sets how the host connects the port: by a Linux bridge, or by a device; `binding_failed` on an unknown host."""
    if not row.host:
        row.vif_type, row.vif_details = UNBOUND, {}
    elif row.host not in cloud.hosts:
        row.vif_type, row.vif_details = FAILED, {}
    elif row.vnic_type in OF_DEVICES:
        network = cloud.store.session.get_one(Network, port.network_id)
        row.vif_type = WHOLE_DEVICE if row.vnic_type == "direct-physical" else FUNCTION
        vlan = {"vlan": str(network.segmentation_id)} if network.network_type == "vlan" else {}
        row.vif_details = {"connectivity": "l2", "port_filter": False} | vlan
    else:
        backend = cloud.backends.get(row.host, Backend.BRIDGE)
        row.vif_type = BRIDGE if backend is Backend.BRIDGE else SWITCH
        row.vif_details = {"connectivity": "l2", "port_filter": backend is not Backend.BRIDGE} | _plugging(
            port, backend
        )


def _plugging(port: Port, backend: Backend) -> Json:
    match backend:
        case Backend.BRIDGE:
            return {"bridge_name": "brq" + port.network_id[:11]}
        case Backend.OVN:
            return {"bridge_name": "br-int", "datapath_type": "system", "ovs_create_tap": True}
    return {"bridge_name": "br-int", "datapath_type": "system", "ovs_hybrid_plug": backend is Backend.HYBRID}


def move(cloud: Cloud, port: Port, host: str) -> PortBinding:
    """Moves the port's active binding to a host ("" for none). Changes nothing if it is there already."""
    present = port.active_binding
    if present is not None and present.host == host and present.vif_type != FAILED:
        return present
    profile: dict[str, Any] = present.profile if present else {}
    if present is not None and present.host == host:
        connect(cloud, port, present)
        return present
    for stale in (present, on_host(port, host)):
        if stale is not None and stale in port.bindings:
            port.bindings.remove(stale)
    row = PortBinding(host=host, status="ACTIVE", vnic_type=port.vnic_type, profile=profile, vif_details={})
    connect(cloud, port, row)
    port.bindings.append(row)
    return row


def view(row: PortBinding) -> Json:
    return {
        "host": row.host,
        "status": row.status,
        "vnic_type": row.vnic_type,
        "vif_type": row.vif_type,
        "vif_details": row.vif_details,
        "profile": row.profile,
    }
