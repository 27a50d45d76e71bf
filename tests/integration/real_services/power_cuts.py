"""A host loses its power and its server is evacuated; later the host is back, with what it had noted of its ports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.functional.processes.own_process import until
from tests.integration.real_services.guests import GuestCloud
from tests.integration.real_services.network_journeys import NEIGHBOUR, SOURCE, devices_of, is_nowhere_else
from tests.integration.real_services.outsiders import (
    Outside,
    becomes_shut,
    is_shut,
    lets_in_what_its_group_says,
    open_group,
    serving,
)
from tests.integration.real_services.test_guests_kept_running import migration
from tests.integration.real_services.test_real_guests import answers, ended


@contextmanager
def power_cut(cloud: GuestCloud, host: str) -> Iterator[None]:
    """An operator says that the host is off."""
    cloud.processes[host].kill()
    cloud.services.switches.lose_power(host)
    cloud.machines.kill_guests(host)
    _force_down(cloud, host, True)
    try:
        yield
    finally:
        cloud.services.switches.regain_power(host)
        _force_down(cloud, host, False)
        cloud.restart(host).wait_ready()


def is_evacuated(cloud: GuestCloud) -> None:
    """Reached as its group says before, without its host, and when the host is back."""
    web, server = open_group(cloud), serving(cloud, SOURCE)
    answers(cloud, server)
    outside = Outside(cloud, server)
    is_shut(outside)
    cloud.member.compute.add_security_group_to_server(server, web)
    lets_in_what_its_group_says(outside)
    (port,) = cloud.admin.network.ports(device_id=server.id)

    with power_cut(cloud, SOURCE):
        cloud.admin.compute.evacuate_server(server.id, host=NEIGHBOUR)
        # Such a server is off until somebody starts it.
        assert ended(cloud, server, "SHUTOFF").compute_host == NEIGHBOUR
        cloud.member.compute.start_server(server.id)
        ended(cloud, server, "ACTIVE")
        lets_in_what_its_group_says(Outside(cloud, server, off=SOURCE))
        assert devices_of(cloud, NEIGHBOUR, port.id)

    until(lambda: devices_of(cloud, SOURCE, port.id), lambda seen: not seen, "the port to leave the host that was off")
    until(lambda: migration(cloud, server)["status"], lambda seen: seen == "completed", "the host to be clean")
    lets_in_what_its_group_says(outside)
    is_nowhere_else(cloud, server)
    cloud.member.compute.remove_security_group_from_server(server, web)
    becomes_shut(outside)
    answers(cloud, server)


def _force_down(cloud: GuestCloud, host: str, down: bool) -> None:
    (service,) = [each for each in cloud.admin.compute.services() if each.host == host]
    body = {"forced_down": down}
    answer = cloud.admin.compute.put(f"/os-services/{service.id}", json=body, microversion="2.53")
    assert answer.status_code == 200, answer.text
