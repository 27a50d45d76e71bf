"""Security groups of real guests, kept by the firewall of Neutron's agents: what they let in, wherever the guest is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.real_services.guests import GuestCloud, guest_cloud_here
from tests.integration.real_services.network_journeys import CELLS, goes_everywhere

pytestmark = [pytest.mark.timeout(900), pytest.mark.libvirt]


@pytest.fixture(scope="module")
def cloud() -> Iterator[GuestCloud]:
    with guest_cloud_here(cells=CELLS) as running:
        yield running


def test_a_guest_is_reached_as_its_groups_say_before_and_after_it_moves(cloud: GuestCloud) -> None:
    goes_everywhere(cloud)
