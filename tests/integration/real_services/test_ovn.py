"""Real guests on OVN: Geneve between the hosts, and a target whose network is up before the guest's memory travels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.real_services.guests import OPTIONS, GuestCloud, guest_cloud_here
from tests.integration.real_services.network_journeys import (
    CELLS,
    NEIGHBOUR,
    SOURCE,
    goes_everywhere,
    is_nowhere_else,
    stays_where_it_is,
)
from tests.integration.real_services.ovn import OVN, missing
from tests.integration.real_services.power_cuts import is_evacuated
from tests.integration.real_services.test_guests_kept_running import migrate_live
from tests.integration.real_services.test_real_guests import answers, ended

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.libvirt,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

# Seconds until a target whose ports are not wired is abandoned.
WAIT = 60


@pytest.fixture(scope="module")
def cloud() -> Iterator[GuestCloud]:
    options = {**OPTIONS, "DEFAULT": {**OPTIONS["DEFAULT"], "vif_plugging_timeout": WAIT}}
    with guest_cloud_here(cells=CELLS, networking=OVN, options=options) as running:
        yield running


@pytest.fixture(autouse=True)
def _nothing_left(cloud: GuestCloud) -> Iterator[None]:
    yield
    cloud.delete_all()


def test_a_guest_is_reached_as_its_groups_say_before_and_after_it_moves(cloud: GuestCloud) -> None:
    goes_everywhere(cloud)


def test_a_guest_whose_host_is_off_is_reached_elsewhere_and_nothing_of_it_stays_there(cloud: GuestCloud) -> None:
    is_evacuated(cloud)


def test_a_guest_leaves_a_host_whose_controller_is_dead(cloud: GuestCloud) -> None:
    server, switches = cloud.boot_on(SOURCE), cloud.services.switches
    answers(cloud, server)
    cloud.services.machine.kill(switches.agent(SOURCE))
    try:
        migrate_live(cloud, server, NEIGHBOUR)
        assert ended(cloud, server, "ACTIVE").compute_host == NEIGHBOUR
        # Its own ports' flows still lead to where the guest was.
        answers(cloud, server, off=SOURCE)
    finally:
        switches.start_agent(SOURCE)
    answers(cloud, server)
    is_nowhere_else(cloud, server)
    migrate_live(cloud, server, SOURCE)
    assert ended(cloud, server, "ACTIVE").compute_host == SOURCE
    answers(cloud, server)
    is_nowhere_else(cloud, server)


def test_no_guest_goes_live_to_a_host_whose_controller_is_dead(cloud: GuestCloud) -> None:
    server, switches = cloud.boot_on(SOURCE), cloud.services.switches
    answers(cloud, server)
    cloud.services.machine.kill(switches.agent(NEIGHBOUR))
    try:
        migrate_live(cloud, server, NEIGHBOUR)
        # Its own host's port there is not served meanwhile.
        ended(cloud, server, "ACTIVE")
    finally:
        switches.start_agent(NEIGHBOUR)
    stays_where_it_is(cloud, server, SOURCE)
    migrate_live(cloud, server, NEIGHBOUR)
    assert ended(cloud, server, "ACTIVE").compute_host == NEIGHBOUR
    answers(cloud, server)
