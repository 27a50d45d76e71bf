"""What bindings may ask for (`causeway.hardware.port_plugs`)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from causeway.errors import GuestFailed
from causeway.hardware.port_plugs import DETAILS, refusal_of
from causeway.model.network import Vif
from causeway.virt.libvirt.network import Ports

# The keys of neutron_lib's `portbindings`, and those that the drivers in Neutron's tree add (Neutron 29).
NEUTRONS = {
    *("port_filter", "ovs_hybrid_plug", "vlan", "macvtap_source", "macvtap_mode", "physical_interface", "bridge_name"),
    *("connectivity", "bound_drivers", "datapath_type", "vhostuser_mode", "vhostuser_socket", "vhostuser_ovs_plug"),
    *("pf_mac_address", "vf_num"),
}
OVS = {
    "port_filter": True,
    "connectivity": "l2",
    "ovs_hybrid_plug": False,
    "datapath_type": "netdev",
    "bridge_name": "br-int",
    "bound_drivers": {"0": "openvswitch"},
}
DPDK = {
    **OVS,
    "vhostuser_mode": "server",
    "vhostuser_ovs_plug": True,
    "vhostuser_socket": "/var/run/openvswitch/vhu22222222-22",
}
HYBRID = {**OVS, "ovs_hybrid_plug": True}


def test_every_key_of_neutrons_drivers_has_a_row() -> None:
    assert DETAILS.keys() >= NEUTRONS


@pytest.mark.parametrize(
    ("vif_type", "details"),
    [
        ("ovs", OVS),
        ("ovs", {**OVS, "datapath_type": "system"}),
        ("ovs", HYBRID),
        ("ovs", {"port_filter": True, "connectivity": "l2", "bound_drivers": {"0": "ovn"}, "bridge_name": "br-int"}),
        ("ovs", {"port_filter": True, "connectivity": "l2", "ovs_create_tap": True, "datapath_type": "netdev"}),
        ("bridge", {"bridge_name": "brq1234", "port_filter": True}),
        ("vhostuser", DPDK),
        ("hw_veb", {"port_filter": False, "connectivity": "l2", "vlan": "7"}),
        ("hostdev_physical", {"vlan": "7"}),
        ("unbound", {}),
        (None, {}),
        ("ovs", {"of_another_driver": True}),
    ],
)
def test_bindings_that_hosts_plug_are_not_refused(vif_type: str | None, details: dict[str, Any]) -> None:
    assert refusal_of(vif_type, details) is None


@pytest.mark.parametrize(
    ("vif_type", "details", "because"),
    [
        ("bridge", HYBRID, "ovs_hybrid_plug"),
        ("tap", HYBRID, "ovs_hybrid_plug"),
        ("vhostuser", {}, "vhostuser_socket"),
        ("vhostuser", {**DPDK, "vhostuser_ovs_plug": False}, "vhostuser_ovs_plug"),
        ("vhostuser", {**DPDK, "vhostuser_fp_plug": True}, "vhostuser_fp_plug"),
        ("vhostuser", {**DPDK, "vhostuser_mode": "both"}, "vhostuser_mode"),
        ("vhostuser", {**DPDK, "vhostuser_socket": "/run/x"}, "vhostuser_socket"),
        ("vhostuser", {**DPDK, "vhostuser_socket": "/run/../etc/vhu22222222-22"}, "vhostuser_socket"),
        ("vhostuser", {**DPDK, "vhostuser_socket": f"/{'x' * 90}/vhu22222222-22"}, "vhostuser_socket"),
        ("vhostuser", {**DPDK, "vhostuser_socket": "/run/vhu22222222-22\n"}, "vhostuser_socket"),
        ("vhostuser", {**DPDK, "ovs_hybrid_plug": True}, "ovs_hybrid_plug"),
        ("ovs", {"vhostuser_socket": "/run/vhu22222222-22"}, "vhostuser_socket"),
        ("ovs", {"vhostuser_mode": "client"}, "vhostuser_mode"),
        ("macvtap", {"macvtap_source": "eth0"}, "macvtap"),
        ("bridge", {"macvtap_source": "eth0"}, "macvtap_source"),
        ("bridge", {"physical_interface": "eth0"}, "physical_interface"),
        ("ovs", {"datapath_type": "dpdk"}, "datapath_type"),
        ("ovs", {"bridge_name": "../br-int"}, "bridge_name"),
        ("ovs", {"bridge_name": "a-name-that-is-too-long"}, "bridge_name"),
        ("agilio_ovs", {}, "agilio_ovs"),
        ("distributed", {}, "distributed"),
        ("other", {}, "other"),
        ("binding_failed", {}, "binding_failed"),
        ("of-the-future", {}, "of-the-future"),
    ],
)
def test_bindings_that_hosts_refuse_are_not_plugged(vif_type: str, details: dict[str, Any], because: str) -> None:
    reason = refusal_of(vif_type, details)
    assert reason is not None and because in reason
    vif = Vif("port", "fa:16:3e:00:00:01", "network", vif_type=vif_type, details=details)
    agent = SimpleNamespace(prepare=lambda _vif: pytest.fail("it was prepared"))
    with pytest.raises(GuestFailed) as failure:
        Ports(agent).plug("server", vif)
    assert because in failure.value.details
