"""A server that goes everywhere, and is reached as its security groups say all the way: the same on each kind of network."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.functional.processes.own_process import until
from tests.integration.real_services.audits import audit
from tests.integration.real_services.guests import GuestCloud
from tests.integration.real_services.outsiders import (
    Outside,
    becomes_shut,
    is_shut,
    lets_in_what_its_group_says,
    open_group,
    serving,
)
from tests.integration.real_services.test_guests_kept_running import (
    hypervisors_apart,
    migrate_live,
    migration,
    steps,
)
from tests.integration.real_services.test_real_guests import answers, ended

SOURCE, NEIGHBOUR, ELSEWHERE = "cell1-host1", "cell1-host2", "cell2-host1"
CELLS = {"cell1": [SOURCE, NEIGHBOUR], "cell2": [ELSEWHERE]}


def goes_everywhere(cloud: GuestCloud) -> None:
    """Cold to the other cell and back (revert), there for good (confirm), live across cells and inside one, back near-live; and
    it has a second port for a while."""
    web, server = open_group(cloud), serving(cloud, SOURCE)
    # The default group lets its own members in, of which the hosts' other ports are.
    answers(cloud, server)
    outside = Outside(cloud, server)
    is_shut(outside)
    cloud.member.compute.add_security_group_to_server(server, web)
    lets_in_what_its_group_says(outside)

    for end, where in (("revert", SOURCE), ("confirm", ELSEWHERE)):
        cloud.admin.compute.migrate_server(server, host=ELSEWHERE)
        assert ended(cloud, server, "VERIFY_RESIZE").compute_host == ELSEWHERE
        lets_in_what_its_group_says(outside)
        getattr(cloud.member.compute, f"{end}_server_resize")(server.id)
        assert ended(cloud, server, "ACTIVE").compute_host == where
        lets_in_what_its_group_says(outside)
        is_nowhere_else(cloud, server)

    for host in (SOURCE, NEIGHBOUR, ELSEWHERE):
        migrate_live(cloud, server, host)
        assert ended(cloud, server, "ACTIVE").compute_host == host
        lets_in_what_its_group_says(outside)
        is_nowhere_else(cloud, server)

    with hypervisors_apart(cloud):
        migrate_live(cloud, server, SOURCE)
        assert ended(cloud, server, "ACTIVE").compute_host == SOURCE
    assert "SaveGuest" in steps(cloud, server)
    lets_in_what_its_group_says(outside)
    is_nowhere_else(cloud, server)

    has_a_second_port_for_a_while(cloud, server)
    cloud.member.compute.remove_security_group_from_server(server, web)
    becomes_shut(outside)
    answers(cloud, server)


def is_nowhere_else(cloud: GuestCloud, server: Any) -> None:
    """Its guest, its port and the port's devices are on its host only; nobody says that it is going anywhere."""
    cloud.settle()
    host = cloud.show(server).compute_host
    assert cloud.running_on(server) == [host]
    switches = cloud.services.switches
    for port in cloud.admin.network.ports(device_id=server.id):
        assert "migrating_to" not in port.binding_profile
        until(partial(switches.wires, host, cloud.admin, port.id), bool, f"port {port.id} to be wired on {host}")
        found = cloud.admin.network.get(f"/ports/{port.id}/bindings").json()["bindings"]
        assert {each["host"]: each["status"] for each in found} == {host: "ACTIVE"}
        assert {each for each in cloud.hosts if devices_of(cloud, each, port.id)} == {host}
    assert audit(cloud) == []


def devices_of(cloud: GuestCloud, host: str, port_id: str) -> list[str]:
    """What a host has of a port: its tap device, a bridge of its own with a pair of devices, and what its switch knows."""
    names = cloud.services.switches.devices(host)
    return sorted(name for name in names if name[3:] and port_id.startswith(name[3:]))


def stays_where_it_is(cloud: GuestCloud, server: Any, host: str) -> None:
    """A live migration has failed: the guest and its port are as before."""
    until(lambda: migration(cloud, server)["status"], lambda seen: seen in ("error", "failed"), "the refusal", 400)
    assert ended(cloud, server, "ACTIVE").compute_host == host
    is_nowhere_else(cloud, server)
    answers(cloud, server)


def has_a_second_port_for_a_while(cloud: GuestCloud, server: Any) -> None:
    made = cloud.member.compute.create_server_interface(server.id, net_id=cloud.network)
    host = cloud.show(server).compute_host
    until(partial(cloud.services.switches.wires, host, cloud.admin, made.port_id), bool, "the new port to be wired")
    assert devices_of(cloud, host, made.port_id)
    cloud.member.compute.delete_server_interface(made.port_id, server=server.id)
    until(lambda: devices_of(cloud, host, made.port_id), lambda seen: not seen, "the port to leave")
