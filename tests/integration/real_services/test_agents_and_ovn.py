"""Real guests that go from Open vSwitch's agents to OVN and back, in one Neutron: the first cell has agents, the other OVN."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.real_services.agents_and_ovn import MIXED
from tests.integration.real_services.guests import GuestCloud, guest_cloud_here
from tests.integration.real_services.network_journeys import CELLS, goes_everywhere
from tests.integration.real_services.ovn import missing

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.libvirt,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]


@pytest.fixture(scope="module")
def cloud() -> Iterator[GuestCloud]:
    with guest_cloud_here(cells=CELLS, networking=MIXED) as running:
        yield running


def test_a_guest_is_reached_as_its_groups_say_before_and_after_it_goes_to_ovn_and_back(cloud: GuestCloud) -> None:
    goes_everywhere(cloud)
