"""How a port may ask to be plugged, and what a host of ours does about it: it obeys, or the binding is refused.

A host that plugs a port in another way than its binding says may plug it past the rules that protect the network: those of the
firewall driver ``iptables_hybrid`` are on a bridge of the port's own, and a port without that bridge has none. So every key that
Neutron's drivers put into ``binding:vif_details`` has a row. Source: Neutron's mechanism drivers for Open vSwitch, OVN, macvtap
and SR-IOV, and ``neutron_lib.api.definitions.portbindings``.

Ports of Open vSwitch and of OVN have the same type "ovs". The driver of Open vSwitch's agents says in each binding whether the
port is hybrid; OVN's never does.

Keys without a row come from other drivers. As in Nova they are ignored: what they ask for is unknown, and most only
describe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

# A refusal in words, or None.
Verdict = str | None

_HYBRID = "ovs_hybrid_plug"
_SOCKET, _MODE, _OF_SWITCH = "vhostuser_socket", "vhostuser_mode", "vhostuser_ovs_plug"

# What hosts read of the network beside a port's binding. It is the same on all hosts.
OF_NETWORK = frozenset({"segmentation_id", "network_type", "physical_network"})

_BRIDGE = re.compile(r"[A-Za-z0-9_.-]{1,15}")
# Neutron names the socket after the port. The whole is at most as long as the path of a socket can be.
_SOCKET_PATH = re.compile(r"(?=.{1,100}\Z)(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+/vhu[0-9a-f-]{11}")
# Nova's names of what a host of ours can plug; "tap" is only a device that something else connects.
PLUGGED = frozenset({"ovs", "bridge", "tap", "vhostuser", "hw_veb", "hostdev_physical"})
# Bound to no host, or not yet.
UNBOUND = frozenset({None, "", "unbound"})


def _obeyed(_value: Any) -> Verdict:
    """Hosts do what it says."""
    return None


def _describes(_value: Any) -> Verdict:
    """It describes the network or the driver; a host need not do anything about it."""
    return None


def _only_if_false(value: Any) -> Verdict:
    return "it is set" if value else None


def _known_datapath(value: Any) -> Verdict:
    return (
        None if value in (None, "", "system", "netdev") else f"'{value}' is no datapath of Open vSwitch that hosts know"
    )


def _bridge_name(value: Any) -> Verdict:
    return None if value is None or _BRIDGE.fullmatch(str(value)) else "it is no name of a bridge"


def _socket_path(value: Any) -> Verdict:
    return None if _SOCKET_PATH.fullmatch(str(value)) else "it is no path of a port's socket"


def _socket_mode(value: Any) -> Verdict:
    return None if value in ("client", "server") else "it is neither 'client' nor 'server'"


def _never(_value: Any) -> Verdict:
    return "hosts can't do that"


DETAILS: dict[str, Callable[[Any], Verdict]] = {
    "bridge_name": _bridge_name,
    "datapath_type": _known_datapath,
    "ovs_interfaceid": _obeyed,
    "vlan": _obeyed,
    "pf_mac_address": _obeyed,
    "vf_num": _obeyed,
    # Rules are where the tap device is plugged: in the switch's flows, or on the network's side of a device.
    "port_filter": _describes,
    "connectivity": _describes,
    "bound_drivers": _describes,
    **dict.fromkeys(OF_NETWORK, _describes),
    # On a bridge of its own, where its rules are (`Plug.HYBRID`).
    _HYBRID: _obeyed,
    # Hosts always make the tap device before the guest (`Plug.SWITCH`).
    "ovs_create_tap": _obeyed,
    # A socket of Open vSwitch with DPDK (`Plug.SOCKET`).
    _MODE: _socket_mode,
    _SOCKET: _socket_path,
    _OF_SWITCH: _obeyed,
    "vhostuser_vrouter_plug": _only_if_false,
    "vhostuser_fp_plug": _only_if_false,
    "macvtap_source": _never,
    "macvtap_mode": _never,
    "physical_interface": _never,
}


class Plug(StrEnum):
    """How a host plugs a port. Ports that are devices of the host are not among them."""

    #: libvirt puts the tap device into a bridge that an agent made
    BRIDGE = "bridge"
    #: the host makes the tap device and puts it into Open vSwitch, before there is a guest
    SWITCH = "switch"
    #: libvirt puts the tap device into a bridge of the port's own, which a pair of devices joins with Open vSwitch
    HYBRID = "hybrid"
    #: the hypervisor and Open vSwitch with DPDK share the guest's memory, and find one another at a socket
    SOCKET = "socket"
    #: something else connects the tap device
    TAP = "tap"


def plug_of(vif_type: str | None, details: Mapping[str, Any]) -> Plug | None:
    """How a port is plugged; None: not at all, or it is a device."""
    match vif_type:
        case "ovs":
            return Plug.HYBRID if details.get(_HYBRID) else Plug.SWITCH
        case "bridge":
            return Plug.BRIDGE
        case "vhostuser":
            return Plug.SOCKET
        case "tap":
            return Plug.TAP
    return None


def is_wired_before_activation(vif_type: str | None, details: Mapping[str, Any]) -> bool:
    """Whether the network service wires a plugged port, and says so, although another host's binding is the active one.

    OVN and Open vSwitch's agents do if the port's profile names the host (`causeway.clients.network_migrations`). Other ports
    are wired when their binding is activated.
    """
    return plug_of(vif_type, details) in (Plug.SWITCH, Plug.HYBRID, Plug.SOCKET)


def is_of_agent(details: Mapping[str, Any]) -> bool:
    """Whether an agent of Open vSwitch wires the port. Only such an agent's driver says whether a port is hybrid."""
    return _HYBRID in details


def bridge_of_hybrid(port_id: str) -> str:
    """The name of a hybrid port's own bridge, as Neutron's agents know it."""
    return ("qbr" + port_id)[:14]


def refusal_of(vif_type: str | None, details: Mapping[str, Any]) -> str | None:
    """Says why hosts can't plug a port as its binding wants it; None if they can, or the port is bound to no host."""
    if vif_type in UNBOUND:
        return None
    if vif_type not in PLUGGED:
        return f"binding:vif_type is '{vif_type}'; hosts plug {', '.join(sorted(PLUGGED))}"
    if details.get(_HYBRID) and vif_type != "ovs":
        return f"binding:vif_details has {_HYBRID}, which only ports of type 'ovs' can have, and binding:vif_type is '{vif_type}'"
    is_socket = plug_of(vif_type, details) is Plug.SOCKET
    for key in (_SOCKET, _MODE, _OF_SWITCH):
        if bool(details.get(key)) is not is_socket:
            has = (
                f"lacks {key}, which hosts need"
                if is_socket
                else f"has {key}, which only ports of type 'vhostuser' can have"
            )
            return f"binding:vif_details {has}; binding:vif_type is '{vif_type}'"
    for key, value in details.items():
        reason = DETAILS.get(key, _describes)(value)
        if reason is not None:
            return f"binding:vif_details has {key}: {reason}"
    return None
