"""Plugs ports.

libvirt puts a guest's tap device into the bridge that the port's binding names. In the lab, the lab's own agent makes the bridge;
a bridge of a port's own is made by os-vif.

A port of Open vSwitch is there before its guest, because the tap device is made first. So whoever wires the port there (Neutron's
agent, or ovn-controller) begins before the guest boots, or before its memory travels in a live migration.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Protocol

import os_vif
from os_vif import exception as os_vif_exception
from os_vif.objects import instance_info
from os_vif.objects import network as os_vif_network
from os_vif.objects import vif as os_vif_objects
from pyroute2.netlink.exceptions import NetlinkError
from vif_plug_ovs import linux_net, privsep

from causeway.errors import GuestFailed
from causeway.hardware.port_devices import needs_device
from causeway.hardware.port_plugs import Plug, bridge_of_hybrid, plug_of, refusal_of
from causeway.model.network import Vif
from causeway.virt.libvirt import port_devices, vhost_user

# How the names of bridges begin that Neutron's agent makes for trunks.
_OF_TRUNK = "tbr-"


class NetworkAgent(Protocol):
    """Makes what a port is plugged into on this host. Raises `GuestFailed`."""

    def prepare(self, vif: Vif) -> None: ...


class Ports:
    """Plugs the ports of one host's guests. ``agent`` None: the network service has an agent on this host."""

    def __init__(self, agent: NetworkAgent | None) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._initialized = False

    def plug(self, uuid: str, vif: Vif, *, has_queues: bool = False) -> None:
        """``has_queues``: the guest's card has more than one queue."""
        reason = refusal_of(vif.vif_type, vif.details)
        if reason is not None:
            # Whoever bound the port has checked this, unless the binding was changed since, or is one of 0.1.0.
            raise GuestFailed(f"Port {vif.id} can't be plugged as its binding says.", details=reason)
        if port_devices.is_device(vif):
            port_devices.plug(vif)
            return
        match plug_of(vif.vif_type, vif.details):
            case Plug.BRIDGE if self._agent is not None:
                self._agent.prepare(vif)
            case Plug.HYBRID:
                self._call_os_vif(uuid, vif, partial(_hybrid, vif), plug=True)
            case Plug.SOCKET:
                self._call_os_vif(uuid, vif, partial(_at_socket, vif), plug=True)
            case Plug.SWITCH:
                if not _exists(vif.devname):
                    self._discard_stale(uuid, vif)
                make = partial(_in_switch, vif, has_queues=has_queues)
                self._call_os_vif(uuid, vif, make, plug=True, before=partial(_make_tap, vif, has_queues=has_queues))

    def _discard_stale(self, uuid: str, vif: Vif) -> None:
        """Removes what the switch has noted of a port without a device: no guest of this host can use it.

        Of a guest that Nova made, libvirt deletes the device at its end, and the port stays. A switch in user space keeps the old
        device when another one gets its name, and nobody ever reaches the guest. A trunk's bridge stays.
        """
        self._call_os_vif(uuid, vif, partial(_in_switch, vif, bridge=""), plug=False)

    def unplug(self, uuid: str, vif: Vif) -> None:
        if needs_device(vif.vnic_type):
            port_devices.unplug(vif)
        elif vhost_user.is_at_socket(vif):
            self._call_os_vif(uuid, vif, partial(_at_socket, vif, bridge=_left(vif)), plug=False)
        elif vif.vif_type == "ovs":
            # Of a hybrid port, os-vif finds the bridge.
            self._call_os_vif(uuid, vif, partial(_in_switch, vif, bridge=_left(vif)), plug=False)
            if plug_of(vif.vif_type, vif.details) is Plug.HYBRID:
                # A host that was off has no such bridge, but its switch has noted the port.
                self._call_os_vif(uuid, vif, partial(_hybrid, vif, bridge=_left(vif)), plug=False)

    def _call_os_vif(
        self,
        uuid: str,
        vif: Vif,
        make: Callable[[], os_vif_objects.VIFBase],
        *,
        plug: bool,
        before: Callable[[], None] | None = None,
    ) -> None:
        """``make``: makes the object for os-vif, whose classes are there only when os-vif was initialized.

        ``before``: is called first, and needs os-vif, too.
        """
        with self._lock:
            if not self._initialized:
                os_vif.initialize()
                if os.geteuid() == 0:
                    # As root this process needs no helper process with more rights.
                    privsep.vif_plug.set_client_mode(False)
                self._initialized = True
        guest = instance_info.InstanceInfo(uuid=uuid, name=f"instance-{uuid}")
        try:
            if before is not None:
                before()
            (os_vif.plug if plug else os_vif.unplug)(make(), guest)
        except (os_vif_exception.ExceptionBase, NetlinkError, OSError) as error:
            what = "plugged" if plug else "unplugged"
            raise GuestFailed(f"Port {vif.id} could not be {what}.", details=str(error)) from error


def is_gone(vif: Vif) -> bool:
    """Whether a port of Open vSwitch is not plugged: its host was off, or its device went with a guest that Nova made."""
    match plug_of(vif.vif_type, vif.details):
        case Plug.SWITCH:
            return not _exists(vif.devname)
        case Plug.HYBRID:
            return not _exists(bridge_of_hybrid(vif.id))
    return False


def _exists(device: str) -> bool:
    try:
        socket.if_nametoindex(device)
    except OSError:
        return False
    return True


def _make_tap(vif: Vif, *, has_queues: bool) -> None:
    """Makes the port's tap device, and brings it up, before the switch knows of it. May be repeated.

    os-vif would bring it up when the switch has seen it. Open vSwitch in user space sets flags as it read them before, so now and
    then it takes such a device down again, and nobody ever reaches the guest.
    """
    if _exists(vif.devname):
        linux_net.set_interface_state(vif.devname, "up")
    else:
        linux_net.create_tap(vif.devname, vif.mtu, vif.address, multiqueue=has_queues)


def _in_switch(vif: Vif, *, has_queues: bool = False, bridge: str | None = None) -> os_vif_objects.VIFOpenVSwitch:
    return os_vif_objects.VIFOpenVSwitch(
        vif_name=vif.devname,
        bridge_name=_bridge(vif),
        **_of_open_vswitch(vif, bridge, create_port=True, create_tap=True, multiqueue=has_queues),
    )


def _hybrid(vif: Vif, *, bridge: str | None = None) -> os_vif_objects.VIFBridge:
    own = bridge_of_hybrid(vif.id)
    return os_vif_objects.VIFBridge(vif_name=vif.devname, bridge_name=own, **_of_open_vswitch(vif, bridge))


def _at_socket(vif: Vif, *, bridge: str | None = None) -> os_vif_objects.VIFVHostUser:
    path = vhost_user.socket_of(vif)
    return os_vif_objects.VIFVHostUser(
        vif_name=PurePosixPath(path).name, path=path, mode=vhost_user.mode_of(vif), **_of_open_vswitch(vif, bridge)
    )


def _of_open_vswitch(vif: Vif, bridge: str | None, **profile: bool) -> dict[str, Any]:
    """What os-vif's plugin for Open vSwitch must know of each port.

    ``bridge``: the switch's, if not the one that the binding names. ``profile``: more of its port profile.
    """
    bridge = _bridge(vif) if bridge is None else bridge
    return {
        "id": vif.id,
        "address": vif.address,
        "plugin": "ovs",
        "has_traffic_filtering": bool(vif.details.get("port_filter")),
        "preserve_on_delete": vif.preserve_on_delete,
        "network": os_vif_network.Network(id=vif.network_id, bridge=bridge, label=vif.network_label, mtu=vif.mtu),
        "port_profile": os_vif_objects.VIFPortProfileOpenVSwitch(
            interface_id=str(vif.details.get("ovs_interfaceid") or vif.id),
            # os-vif sets it on the bridge too, and a type other than the agent's would break the bridge.
            datapath_type=str(vif.details.get("datapath_type") or "system"),
            **profile,
        ),
    }


def _bridge(vif: Vif) -> str:
    """The bridge of Open vSwitch that the binding names."""
    return str(vif.details.get("bridge_name") or "br-int")


def _left(vif: Vif) -> str:
    """The bridge that a port leaves: empty for whichever it is in, because the binding may be another host's.

    A trunk's bridge has the same name everywhere, and is deleted with the port.
    """
    return _bridge(vif) if _bridge(vif).startswith(_OF_TRUNK) else ""
