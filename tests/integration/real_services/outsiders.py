"""Somebody on a server's network who is in none of its groups, on each host; and whom the server's group lets in."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from tests.functional.processes.own_process import until
from tests.integration.real_services.guests import GuestCloud

OPEN, CLOSED = 80, 81
_SERVE = f"""\
#!/bin/sh
for port in {OPEN} {CLOSED}; do
    (while :; do nc -l -p $port -e echo "served $port"; done) &
done
"""


class Outside:
    """``off``: a host on which nobody is asked."""

    def __init__(self, cloud: GuestCloud, server: Any, off: str = "") -> None:
        self._cloud, self._switches = cloud, cloud.services.switches
        self._hosts = [host for host in cloud.hosts if host != off]
        (self._address,) = [each["addr"] for each in cloud.show(server).addresses["network"]]

    def pings(self) -> dict[str, bool]:
        return {host: self._ping(host) for host in self._hosts}

    def hears(self, port: int) -> dict[str, str | None]:
        where = (self._cloud.admin, self._cloud.network, self._address, port)
        return {host: self._switches.heard(host, *where, stranger=True) for host in self._hosts}

    def _ping(self, host: str) -> bool:
        where = (self._cloud.admin, self._cloud.network, self._address)
        return self._switches.ping(host, *where, stranger=True).answered


def serving(cloud: GuestCloud, host: str) -> Any:
    """A server whose guest listens at both ports."""
    return cloud.boot_on(host, user_data=b64encode(_SERVE.encode()).decode(), config_drive=True)


def open_group(cloud: GuestCloud) -> Any:
    """A group that lets in pings, and calls of one of the ports."""
    network = cloud.member.network
    if found := network.find_security_group("web"):
        return found
    web = network.create_security_group(name="web")
    for rule in ({"protocol": "icmp"}, {"protocol": "tcp", "port_range_min": OPEN, "port_range_max": OPEN}):
        network.create_security_group_rule(security_group_id=web.id, direction="ingress", ethertype="IPv4", **rule)
    return web


def is_shut(outside: Outside) -> None:
    assert not any(outside.pings().values())
    assert not any(outside.hears(OPEN).values())


def becomes_shut(outside: Outside) -> None:
    until(outside.pings, lambda seen: not any(seen.values()), "the guest to be shut")
    is_shut(outside)


def lets_in_what_its_group_says(outside: Outside) -> None:
    until(outside.pings, lambda seen: all(seen.values()), "the guest to answer")
    until(lambda: outside.hears(OPEN), lambda seen: set(seen.values()) == {f"served {OPEN}"}, "the guest to serve")
    assert not any(outside.hears(CLOSED).values())
