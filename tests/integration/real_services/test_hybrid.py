"""Real guests whose security groups are kept by iptables, on a bridge of each port's own (``iptables_hybrid``).

The neighbour in the first cell has an integration bridge of another name.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.real_services.guests import GuestCloud, guest_cloud_here
from tests.integration.real_services.hybrid import HYBRID
from tests.integration.real_services.network_journeys import CELLS, SOURCE, devices_of, goes_everywhere
from tests.integration.real_services.power_cuts import is_evacuated

pytestmark = [pytest.mark.timeout(1500), pytest.mark.libvirt]


@pytest.fixture(scope="module")
def cloud() -> Iterator[GuestCloud]:
    with guest_cloud_here(cells=CELLS, networking=HYBRID) as running:
        yield running


@pytest.fixture(autouse=True)
def _nothing_left(cloud: GuestCloud) -> Iterator[None]:
    yield
    cloud.delete_all()


def test_a_guest_is_reached_as_its_groups_say_before_and_after_it_moves(cloud: GuestCloud) -> None:
    goes_everywhere(cloud)


def test_a_port_has_a_bridge_of_its_own_between_the_guest_and_the_switch(cloud: GuestCloud) -> None:
    server = cloud.boot_on(SOURCE)
    (port,) = cloud.admin.network.ports(device_id=server.id)
    names = {name[:3] for name in devices_of(cloud, SOURCE, port.id)}
    assert names == {"tap", "qbr", "qvb", "qvo"}
    cloud.delete_all()
    assert devices_of(cloud, SOURCE, port.id) == []


def test_a_guest_whose_host_is_off_is_reached_elsewhere_and_nothing_of_it_stays_there(cloud: GuestCloud) -> None:
    is_evacuated(cloud)
