"""Ports of Open vSwitch go through os-vif."""

from __future__ import annotations

from typing import Any

import os_vif
import pytest

from causeway.model.network import Vif
from causeway.virt.libvirt.network import Ports

SERVER = "11111111-2222-3333-4444-555555555555"
PORT_ID = "22222222-2222-3333-4444-555555555555"
NETWORK_ID = "33333333-2222-3333-4444-555555555555"


@pytest.mark.parametrize(("details", "datapath"), [({"datapath_type": "netdev"}, "netdev"), ({}, "system")])
def test_the_bridge_keeps_the_datapath_that_its_agent_has_reported(
    monkeypatch: pytest.MonkeyPatch, details: dict[str, Any], datapath: str
) -> None:
    plugged: list[Any] = []
    monkeypatch.setattr(os_vif, "plug", lambda vif, _guest: plugged.append(vif))
    vif = Vif(id=PORT_ID, address="fa:16:3e:00:00:01", network_id=NETWORK_ID, vif_type="ovs", details=details)

    Ports(None).plug(SERVER, vif)

    (port,) = plugged
    assert port.port_profile.datapath_type == datapath
    assert port.port_profile.interface_id == PORT_ID
    assert port.network.bridge == "br-int"
