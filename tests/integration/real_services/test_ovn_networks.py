"""Real guests on OVN, with what it does for them beside their ports: floating IPs, metadata, trunks."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.functional.processes.own_process import until
from tests.integration.real_services.floating import External
from tests.integration.real_services.guests import GuestCloud, guest_cloud_here
from tests.integration.real_services.network_journeys import CELLS, ELSEWHERE, NEIGHBOUR, SOURCE, is_nowhere_else
from tests.integration.real_services.outsiders import open_group
from tests.integration.real_services.ovn import missing
from tests.integration.real_services.ovn_metadata import OVN_WITH_METADATA, MetadataCloud
from tests.integration.real_services.test_guests_kept_running import migrate_live
from tests.integration.real_services.test_real_guests import ended
from tests.integration.real_services.trunks import Trunk

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.libvirt,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

# Asks without an end who it is, and says so each time.
ASKS = r"""#!/bin/sh
(while sleep 1; do
    (printf 'GET /openstack/latest/meta_data.json HTTP/1.0\r\n\r\n'; sleep 1) | nc -w 5 169.254.169.254 80 2>/dev/null |
        sed -n "s/.*\"uuid\": *\"\([^\"]*\)\".*/METADATA \1 $(cat /proc/sys/kernel/random/uuid)/p" > /dev/console
done) &
"""


@pytest.fixture(scope="module")
def running() -> Iterator[GuestCloud]:
    with guest_cloud_here(cells=CELLS, networking=OVN_WITH_METADATA, kind=MetadataCloud) as cloud:
        yield cloud


@pytest.fixture
def cloud(running: GuestCloud) -> Iterator[GuestCloud]:
    yield running
    running.delete_all()


def booted(cloud: GuestCloud, script: str, **network: Any) -> Any:
    """Without a config drive: the guest has its script of the metadata service."""
    return cloud.boot_on(SOURCE, user_data=b64encode(script.encode()).decode(), **network)


def reads_its_metadata(cloud: GuestCloud, server: Any) -> None:
    """From now on, once more."""

    def newest() -> str | None:
        said = cloud.member.compute.get_server_console_output(server.id)["output"]
        return next(reversed(re.findall(f"METADATA {server.id} ([0-9a-f-]+)", said)), None)

    before = newest()
    until(newest, lambda seen: seen not in (None, before), "the guest to read its metadata")


def goes_everywhere(cloud: GuestCloud, server: Any, works_on: Callable[[str], None]) -> None:
    """Cold to the other cell and back, there for good, live across cells and inside one."""
    works_on(SOURCE)
    for end, where in (("revert", SOURCE), ("confirm", ELSEWHERE)):
        cloud.admin.compute.migrate_server(server, host=ELSEWHERE)
        ended(cloud, server, "VERIFY_RESIZE")
        works_on(ELSEWHERE)
        getattr(cloud.member.compute, f"{end}_server_resize")(server.id)
        assert ended(cloud, server, "ACTIVE").compute_host == where
        works_on(where)
        is_nowhere_else(cloud, server)
    for host in (SOURCE, NEIGHBOUR):
        migrate_live(cloud, server, host)
        assert ended(cloud, server, "ACTIVE").compute_host == host
        works_on(host)
        is_nowhere_else(cloud, server)


def test_a_guest_keeps_its_floating_ip_and_its_metadata_wherever_it_goes(cloud: GuestCloud) -> None:
    outside, web, server = External(cloud), open_group(cloud), booted(cloud, ASKS)
    address = outside.address_of(server)
    reads_its_metadata(cloud, server)
    assert not outside.hears(address)
    cloud.member.compute.add_security_group_to_server(server, web)

    def works_on(_host: str) -> None:
        until(lambda: outside.hears(address), bool, "the floating IP to answer")
        reads_its_metadata(cloud, server)

    goes_everywhere(cloud, server, works_on)
    cloud.member.compute.remove_security_group_from_server(server, web)
    until(lambda: outside.hears(address), lambda heard: not heard, "the floating IP to be shut")


def test_the_subport_of_a_trunk_goes_wherever_its_guest_goes(cloud: GuestCloud) -> None:
    trunk = Trunk(cloud, open_group(cloud))
    server = booted(cloud, f"#!/bin/sh\n{trunk.script()}", networks=[{"port": trunk.parent.id}])
    goes_everywhere(cloud, server, trunk.is_on)
