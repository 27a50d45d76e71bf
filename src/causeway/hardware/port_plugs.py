"""How a port may ask to be plugged, and what a host of ours does about it: it obeys, or the binding is refused.

A host that plugs a port in another way than its binding says may plug it past the rules that protect the network: those of the
firewall driver ``iptables_hybrid`` are on a bridge of the port's own, and a port without that bridge has none. So every key that
Neutron's drivers put into ``binding:vif_details`` has a row. Source: Neutron's mechanism drivers for Open vSwitch, OVN, macvtap
and SR-IOV, and ``neutron_lib.api.definitions.portbindings``.

Keys without a row come from other drivers. As in Nova they are ignored: what they ask for is unknown, and most only
describe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

# A refusal in words, or None.
Verdict = str | None

_BRIDGE = re.compile(r"[A-Za-z0-9_.-]{1,15}")
# Nova's names of what a host of ours can plug; "tap" is only a device that something else connects.
PLUGGED = frozenset({"ovs", "bridge", "tap", "hw_veb", "hostdev_physical"})
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
    # As hosts read them of the network, beside the binding.
    "segmentation_id": _describes,
    "network_type": _describes,
    "physical_network": _describes,
    # Its rules are on a bridge between the tap device and the switch, which hosts do not make.
    "ovs_hybrid_plug": _only_if_false,
    "vhostuser_mode": _never,
    "vhostuser_socket": _never,
    "vhostuser_ovs_plug": _only_if_false,
    "vhostuser_vrouter_plug": _only_if_false,
    "vhostuser_fp_plug": _only_if_false,
    "macvtap_source": _never,
    "macvtap_mode": _never,
    "physical_interface": _never,
}


def refusal_of(vif_type: str | None, details: Mapping[str, Any]) -> str | None:
    """Says why hosts can't plug a port as its binding wants it; None if they can, or the port is bound to no host."""
    if vif_type in UNBOUND:
        return None
    if vif_type not in PLUGGED:
        return f"binding:vif_type is '{vif_type}'; hosts plug {', '.join(sorted(PLUGGED))}"
    for key, value in details.items():
        reason = DETAILS.get(key, _describes)(value)
        if reason is not None:
            hint = "; use firewall_driver = openvswitch" if key == "ovs_hybrid_plug" else ""
            return f"binding:vif_details has {key}: {reason}{hint}"
    return None
