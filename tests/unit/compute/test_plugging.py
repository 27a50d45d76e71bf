"""For which ports a guest waits after it has arrived live, or when it starts after its host was off."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from causeway.compute.guests import plugging
from causeway.compute.host.vif_events import Watch
from causeway.model.network import Vif

SERVER = "11111111-2222-3333-4444-555555555555"
KINDS = ("ovs", "vhostuser", "bridge", "tap", "hw_veb")


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugging, "PATIENCE", 0.01)


def ports() -> list[Vif]:
    """One of each kind, none of which comes up."""
    return [Vif(f"port-{kind}", "fa:16:3e:00:00:01", "network", vif_type=kind) for kind in KINDS]


def test_ports_that_are_reported_are_waited_for_after_an_arrival() -> None:
    down = [{"id": vif.id, "status": "DOWN"} for vif in ports()]
    host: Any = SimpleNamespace(
        name="host1",
        conf=SimpleNamespace(vif_plugging_timeout=300),
        network=SimpleNamespace(ports_of_server=lambda _context, _owner: down),
    )
    found = plugging.after_arrival(host, Watch(SERVER), ports())
    assert {vif.vif_type for vif in found if not vif.active} == {"ovs", "vhostuser", "bridge"}


def test_only_ports_that_the_switch_wires_once_more_are_waited_for_after_a_power_cut() -> None:
    watch = Watch(SERVER)
    with plugging.anew(watch, ports())():
        pass
    assert watch.unplugged == {"port-ovs", "port-vhostuser"}
