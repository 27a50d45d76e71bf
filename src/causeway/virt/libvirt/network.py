"""Plugs ports.

libvirt puts a guest's tap device into the bridge or switch that the port's binding names. An agent makes that first: in a real
cloud the network service's agent (which reacts to the tap device) and os-vif, in the lab the lab's own.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol

import os_vif
from os_vif import exception as os_vif_exception
from os_vif.objects import instance_info
from os_vif.objects import network as os_vif_network
from os_vif.objects import vif as os_vif_objects
from vif_plug_ovs import privsep

from causeway.errors import GuestFailed
from causeway.hardware.port_devices import needs_device
from causeway.hardware.port_plugs import refusal_of
from causeway.model.network import Vif
from causeway.virt.libvirt import port_devices


class NetworkAgent(Protocol):
    """Makes what a port is plugged into on this host. Raises `GuestFailed`."""

    def prepare(self, vif: Vif) -> None: ...


class Ports:
    """Plugs the ports of one host's guests. ``agent`` None: the network service has an agent on this host."""

    def __init__(self, agent: NetworkAgent | None) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._initialized = False

    def plug(self, uuid: str, vif: Vif) -> None:
        reason = refusal_of(vif.vif_type, vif.details)
        if reason is not None:
            # Whoever bound the port has checked this, unless the binding was changed since, or is one of 0.1.0.
            raise GuestFailed(f"Port {vif.id} can't be plugged as its binding says.", details=reason)
        if port_devices.is_device(vif):
            port_devices.plug(vif)
        elif self._agent is not None and vif.vif_type == "bridge":
            self._agent.prepare(vif)
        elif vif.vif_type == "ovs":
            self._with_os_vif(uuid, vif, plug=True)

    def unplug(self, uuid: str, vif: Vif) -> None:
        if needs_device(vif.vnic_type):
            port_devices.unplug(vif)
        elif vif.vif_type == "ovs":
            self._with_os_vif(uuid, vif, plug=False)

    def _with_os_vif(self, uuid: str, vif: Vif, *, plug: bool) -> None:
        with self._lock:
            if not self._initialized:
                os_vif.initialize()
                if os.geteuid() == 0:
                    # As root this process needs no helper process with more rights.
                    privsep.vif_plug.set_client_mode(False)
                self._initialized = True
        guest = instance_info.InstanceInfo(uuid=uuid, name=f"instance-{uuid}")
        bridge = str(vif.details.get("bridge_name") or "br-int")
        port = os_vif_objects.VIFOpenVSwitch(
            id=vif.id,
            address=vif.address,
            vif_name=vif.devname,
            bridge_name=bridge,
            plugin="ovs",
            has_traffic_filtering=bool(vif.details.get("port_filter")),
            preserve_on_delete=vif.preserve_on_delete,
            network=os_vif_network.Network(id=vif.network_id, bridge=bridge, label=vif.network_label, mtu=vif.mtu),
            port_profile=os_vif_objects.VIFPortProfileOpenVSwitch(
                interface_id=str(vif.details.get("ovs_interfaceid") or vif.id),
                # os-vif sets it on the bridge too, and a type other than the agent's would break the bridge.
                datapath_type=str(vif.details.get("datapath_type") or "system"),
            ),
        )
        try:
            (os_vif.plug if plug else os_vif.unplug)(port, guest)
        except (os_vif_exception.ExceptionBase, OSError) as error:
            what = "plugged" if plug else "unplugged"
            raise GuestFailed(f"Port {vif.id} could not be {what}.", details=str(error)) from error
