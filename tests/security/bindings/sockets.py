"""Ports of Open vSwitch with DPDK."""

from __future__ import annotations

from typing import Any

from causeway.model.network import Vif

PORT = "22222222-2222-3333-4444-555555555555"
NETWORK = "33333333-2222-3333-4444-555555555555"


def port_at_socket(**details: Any) -> Vif:
    """``details``: more or others of its binding's."""
    usual = {
        "bridge_name": "br-int",
        "datapath_type": "netdev",
        "ovs_hybrid_plug": False,
        "port_filter": True,
        "vhostuser_mode": "server",
        "vhostuser_ovs_plug": True,
        "vhostuser_socket": "/var/run/openvswitch/vhu22222222-22",
    }
    return Vif(PORT, "fa:16:3e:00:00:01", NETWORK, vif_type="vhostuser", details=usual | details)
