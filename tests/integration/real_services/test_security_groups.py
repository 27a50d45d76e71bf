"""Security groups of real guests, kept by the firewall of Neutron's agents: what they let in, wherever the guest is."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.processes.deployment import until
from tests.integration.real_services.guests import GuestCloud, guest_cloud_here
from tests.integration.real_services.test_guests_kept_running import migrate_live
from tests.integration.real_services.test_real_guests import answers, ended

pytestmark = [pytest.mark.timeout(900), pytest.mark.libvirt]

SOURCE, NEIGHBOUR, ELSEWHERE = "cell1-host1", "cell1-host2", "cell2-host1"
CELLS = {"cell1": [SOURCE, NEIGHBOUR], "cell2": [ELSEWHERE]}
OPEN, CLOSED = 80, 81
SERVE = f"""\
#!/bin/sh
for port in {OPEN} {CLOSED}; do
    (while :; do nc -l -p $port -e echo "served $port"; done) &
done
"""


@pytest.fixture(scope="module")
def cloud() -> Iterator[GuestCloud]:
    with guest_cloud_here(cells=CELLS) as running:
        yield running


class Outside:
    """Somebody on the server's network who is in none of its groups, on each host."""

    def __init__(self, cloud: GuestCloud, server: Any) -> None:
        self._cloud, self._switches = cloud, cloud.services.switches
        (self._address,) = [each["addr"] for each in cloud.show(server).addresses["network"]]

    def pings(self) -> dict[str, bool]:
        return {host: self._ping(host) for host in self._cloud.hosts}

    def hears(self, port: int) -> dict[str, str | None]:
        where = (self._cloud.admin, self._cloud.network, self._address, port)
        return {host: self._switches.heard(host, *where, stranger=True) for host in self._cloud.hosts}

    def _ping(self, host: str) -> bool:
        where = (self._cloud.admin, self._cloud.network, self._address)
        return self._switches.ping(host, *where, stranger=True).answered


def is_shut(outside: Outside) -> None:
    assert not any(outside.pings().values())
    assert not any(outside.hears(OPEN).values())


def lets_in_what_its_group_says(outside: Outside) -> None:
    until(outside.pings, lambda seen: all(seen.values()), "the guest to answer")
    until(lambda: outside.hears(OPEN), lambda seen: set(seen.values()) == {f"served {OPEN}"}, "the guest to serve")
    assert not any(outside.hears(CLOSED).values())


def test_a_guest_is_reached_as_its_groups_say_before_and_after_it_moves(cloud: GuestCloud) -> None:
    network = cloud.member.network
    web = network.create_security_group(name="web")
    for rule in ({"protocol": "icmp"}, {"protocol": "tcp", "port_range_min": OPEN, "port_range_max": OPEN}):
        network.create_security_group_rule(security_group_id=web.id, direction="ingress", ethertype="IPv4", **rule)
    server = cloud.boot_on(SOURCE, user_data=b64encode(SERVE.encode()).decode(), config_drive=True)
    # The default group lets its own members in, of which the hosts' other ports are.
    answers(cloud, server)
    outside = Outside(cloud, server)
    is_shut(outside)

    cloud.member.compute.add_security_group_to_server(server, web)
    lets_in_what_its_group_says(outside)

    cloud.admin.compute.migrate_server(server, host=ELSEWHERE)
    assert ended(cloud, server, "VERIFY_RESIZE").compute_host == ELSEWHERE
    lets_in_what_its_group_says(outside)
    cloud.member.compute.confirm_server_resize(server.id)
    ended(cloud, server, "ACTIVE")
    lets_in_what_its_group_says(outside)

    for host in (SOURCE, NEIGHBOUR, ELSEWHERE):
        migrate_live(cloud, server, host)
        assert ended(cloud, server, "ACTIVE").compute_host == host
        lets_in_what_its_group_says(outside)

    cloud.member.compute.remove_security_group_from_server(server, web)
    until(outside.pings, lambda seen: not any(seen.values()), "the guest to be shut")
    is_shut(outside)
    answers(cloud, server)
