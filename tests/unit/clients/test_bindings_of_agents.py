"""Whose bindings must be alone: as real Neutron (29) shows them in ``GET /ports/ID/bindings`` and answers an activation."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.clients.network_bindings import PortBinding

OPEN_VSWITCH = {"connectivity": "l2", "port_filter": True, "ovs_hybrid_plug": False, "datapath_type": "netdev"}
OVN = {"connectivity": "l2", "port_filter": True}


@pytest.mark.parametrize(
    ("vif_type", "details", "alone"),
    [
        ("ovs", OPEN_VSWITCH, True),
        ("ovs", OPEN_VSWITCH | {"ovs_hybrid_plug": True}, True),
        ("unbound", {}, True),
        ("ovs", OVN, False),
        ("bridge", {"connectivity": "l2", "port_filter": False, "bridge_name": "brq1"}, False),
    ],
)
def test_ports_of_neutrons_open_vswitch_agents_come_up_only_without_other_bindings(
    vif_type: str, details: dict[str, Any], alone: bool
) -> None:
    assert PortBinding("host", "ACTIVE", vif_type=vif_type, vif_details=details).must_be_alone is alone
