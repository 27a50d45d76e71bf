"""How a drain moves servers whose ports are devices of their host."""

from __future__ import annotations

from typing import Any

import pytest

from causeway import conf
from causeway.drains.paths import Obstacle, way
from causeway.model.drains import How
from causeway.model.flavor import Flavor
from causeway.model.states import VmState
from causeway.store.cell.residents import Resident

ABLE: dict[str, Any] = {
    "supports_live_migration": True,
    "supports_saved_memory": True,
    "supports_warm_copy": True,
    "supports_live_port_devices": True,
}
OLD = ABLE | {"supports_live_port_devices": False}
FLAVOR = Flavor(flavorid="f", name="f", memory_mb=128, vcpus=1, root_gb=1)


def chosen(
    vnic_type: str,
    vm_state: VmState = VmState.ACTIVE,
    *,
    how: How = How.GENTLEST,
    crosses: bool = False,
    can: dict[str, Any] = ABLE,
    target_can: dict[str, Any] = ABLE,
) -> How | Obstacle:
    server = Resident("uuid", "name", "project", "host1", None, vm_state, None, False, FLAVOR, vnic_types=[vnic_type])
    return way(
        conf.new_config(),
        server,
        how=how,
        resized=False,
        crosses=crosses,
        host_is_dead=False,
        can=can,
        target_can=target_can,
    )


@pytest.mark.parametrize("vnic_type", ["normal", "direct", "macvtap", "vdpa"])
def test_servers_go_with_their_memory(vnic_type: str) -> None:
    assert chosen(vnic_type) is How.LIVE
    assert chosen(vnic_type, crosses=True) is How.NEAR_LIVE


@pytest.mark.parametrize("vnic_type", ["direct-physical", "remote-managed", "virtio-forwarder"])
def test_servers_whose_ports_stay_go_warm(vnic_type: str) -> None:
    assert chosen(vnic_type) is How.WARM
    refused = chosen(vnic_type, how=How.LIVE)
    assert isinstance(refused, Obstacle) and f"({vnic_type})" in refused.why


@pytest.mark.parametrize("crosses", [False, True])
def test_a_host_of_an_older_release_takes_and_sends_no_such_server_live(crosses: bool) -> None:
    for can, target_can in ((OLD, ABLE), (ABLE, OLD)):
        assert chosen("direct", crosses=crosses, can=can, target_can=target_can) is How.WARM
        assert chosen("normal", crosses=crosses, can=can, target_can=target_can) in (How.LIVE, How.NEAR_LIVE)
        refused = chosen("direct", how=How.LIVE, crosses=crosses, can=can, target_can=target_can)
        assert isinstance(refused, Obstacle) and "SR-IOV ports" in refused.why


def test_a_paused_server_keeps_its_port_and_stays() -> None:
    refused = chosen("direct", VmState.PAUSED)
    assert isinstance(refused, Obstacle) and "paused instance with SR-IOV ports" in refused.why
    assert chosen("normal", VmState.PAUSED) is How.LIVE
