"""Ports of Open vSwitch go through os-vif."""

from __future__ import annotations

import socket
from typing import Any

import os_vif
import pytest
from os_vif.objects import vif as os_vif_objects
from pyroute2.netlink.exceptions import NetlinkError
from vif_plug_ovs import linux_net

from causeway.errors import GuestFailed
from causeway.model.network import Vif
from causeway.virt.libvirt import network
from causeway.virt.libvirt.network import Ports

SERVER = "11111111-2222-3333-4444-555555555555"
PORT_ID = "22222222-2222-3333-4444-555555555555"
NETWORK_ID = "33333333-2222-3333-4444-555555555555"


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is done with tap devices of this machine: nothing, but it is recorded."""
    done: list[tuple[Any, ...]] = []
    monkeypatch.setattr(linux_net, "create_tap", lambda *words, multiqueue: done.append(("made", *words, multiqueue)))
    monkeypatch.setattr(linux_net, "set_interface_state", lambda *words: done.append(words))
    monkeypatch.setattr(os_vif, "unplug", lambda port, _guest: done.append(("discarded", port.network.bridge)))
    return done


@pytest.mark.parametrize("is_there", [False, True])
def test_a_tap_device_is_up_before_the_switch_knows_of_it(
    monkeypatch: pytest.MonkeyPatch, made: list[tuple[Any, ...]], is_there: bool
) -> None:
    """Open vSwitch in user space may take a device down that is brought up while it looks."""
    monkeypatch.setattr(network, "_exists", lambda _device: is_there)
    monkeypatch.setattr(os_vif, "plug", lambda port, _guest: made.append(("plugged", port.vif_name)))
    vif = Vif(id=PORT_ID, address="fa:16:3e:00:00:01", network_id=NETWORK_ID, vif_type="ovs", mtu=1442)

    Ports(None).plug(SERVER, vif, has_queues=True)

    device = vif.devname
    # What the switch has noted of a device that is gone is not kept for the new one.
    anew = [("discarded", ""), ("made", device, 1442, "fa:16:3e:00:00:01", True)]
    assert made == [*([(device, "up")] if is_there else anew), ("plugged", device)]


def test_the_bridge_of_a_trunk_stays_when_a_stale_port_in_it_is_discarded(
    monkeypatch: pytest.MonkeyPatch, made: list[tuple[Any, ...]]
) -> None:
    """os-vif deletes a trunk's bridge if it is named. The trunk's other ports are in it."""
    monkeypatch.setattr(os_vif, "plug", lambda port, _guest: made.append(("plugged", port.network.bridge)))
    details = {"bridge_name": "tbr-11111111-2"}
    vif = Vif(id=PORT_ID, address="fa:16:3e:00:00:01", network_id=NETWORK_ID, vif_type="ovs", details=details)
    Ports(None).plug(SERVER, vif)
    assert (made[0], made[-1]) == (("discarded", ""), ("plugged", "tbr-11111111-2"))


def test_a_tap_device_that_can_not_be_made_is_a_failure_of_the_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_words: object, multiqueue: bool) -> None:
        raise NetlinkError(16, f"busy, queues: {multiqueue}")

    monkeypatch.setattr(linux_net, "create_tap", fail)
    vif = Vif(id=PORT_ID, address="fa:16:3e:00:00:01", network_id=NETWORK_ID, vif_type="ovs")
    with pytest.raises(GuestFailed, match="could not be plugged"):
        Ports(None).plug(SERVER, vif)


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
    assert port.port_profile.create_port and port.port_profile.create_tap


@pytest.mark.parametrize("has_queues", [False, True])
def test_a_tap_device_is_made_for_as_many_queues_as_the_guest_has(
    monkeypatch: pytest.MonkeyPatch, has_queues: bool
) -> None:
    plugged: list[Any] = []
    monkeypatch.setattr(os_vif, "plug", lambda vif, _guest: plugged.append(vif))
    vif = Vif(id=PORT_ID, address="fa:16:3e:00:00:01", network_id=NETWORK_ID, vif_type="ovs")

    Ports(None).plug(SERVER, vif, has_queues=has_queues)

    assert plugged[0].port_profile.multiqueue is has_queues


def test_a_hybrid_port_is_joined_with_the_switch_by_a_bridge_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plugged: list[Any] = []
    monkeypatch.setattr(os_vif, "plug", lambda vif, _guest: plugged.append(vif))
    details = {"ovs_hybrid_plug": True, "bridge_name": "br-hosts", "datapath_type": "netdev"}
    vif = Vif(id=PORT_ID, address="fa:16:3e:00:00:01", network_id=NETWORK_ID, vif_type="ovs", details=details)

    Ports(None).plug(SERVER, vif)

    (port,) = plugged
    assert isinstance(port, os_vif_objects.VIFBridge)
    assert (port.plugin, port.bridge_name, port.network.bridge) == ("ovs", "qbr22222222-22", "br-hosts")
    assert port.port_profile.interface_id == PORT_ID


def test_what_a_port_was_plugged_into_is_found_when_it_is_unplugged(monkeypatch: pytest.MonkeyPatch) -> None:
    """os-vif looks for a bridge of the port's own; and the tap device is deleted, whoever made it."""
    unplugged: list[Any] = []
    monkeypatch.setattr(os_vif, "unplug", lambda vif, _guest: unplugged.append(vif))
    for hybrid in (True, False):
        details = {"ovs_hybrid_plug": hybrid}
        vif = Vif(id=PORT_ID, address="fa:16:3e:00:00:01", network_id=NETWORK_ID, vif_type="ovs", details=details)
        unplugged.clear()
        Ports(None).unplug(SERVER, vif)
        first, *others = unplugged
        assert isinstance(first, os_vif_objects.VIFOpenVSwitch)
        assert first.port_profile.create_tap
        # The switch may have noted a hybrid port whose bridge is gone: its host was off.
        assert [type(port) for port in others] == ([os_vif_objects.VIFBridge] if hybrid else [])


@pytest.mark.parametrize(("bridge", "named"), [("br-hosts", ""), ("tbr-11111111-2", "tbr-11111111-2")])
def test_a_port_is_unplugged_from_whichever_bridge_it_is_in(
    monkeypatch: pytest.MonkeyPatch, bridge: str, named: str
) -> None:
    """os-vif looks in all of them if none is named: the binding may be another host's. A trunk's bridge goes with the port."""
    unplugged: list[Any] = []
    monkeypatch.setattr(os_vif, "unplug", lambda vif, _guest: unplugged.append(vif))
    details = {"bridge_name": bridge}
    vif = Vif(id=PORT_ID, address="fa:16:3e:00:00:01", network_id=NETWORK_ID, vif_type="ovs", details=details)
    Ports(None).unplug(SERVER, vif)
    assert [port.network.bridge for port in unplugged] == [named]


@pytest.mark.parametrize(
    ("vif_type", "details", "there", "gone"),
    [
        ("ovs", {}, {"tap22222222-22"}, False),
        ("ovs", {}, {"qbr22222222-22"}, True),
        ("ovs", {"ovs_hybrid_plug": True}, {"qbr22222222-22"}, False),
        ("ovs", {"ovs_hybrid_plug": True}, {"tap22222222-22"}, True),
        ("bridge", {}, set(), False),
        ("hw_veb", {}, set(), False),
    ],
)
def test_a_port_is_gone_if_its_host_was_off(
    monkeypatch: pytest.MonkeyPatch, vif_type: str, details: dict[str, Any], there: set[str], gone: bool
) -> None:
    def index(name: str) -> int:
        if name not in there:
            raise OSError
        return 1

    monkeypatch.setattr(socket, "if_nametoindex", index)
    vif = Vif(id=PORT_ID, address="fa:16:3e:00:00:01", network_id=NETWORK_ID, vif_type=vif_type, details=details)
    assert network.is_gone(vif) is gone
