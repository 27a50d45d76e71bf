"""Reports of servers that leave their hosts: forced, shelved, evacuated, members of groups. From people who run OpenStack.

Numbers are bugs on Launchpad. See docs/known-bugs.md, section 8.
"""

from __future__ import annotations

from typing import Any

import pytest

from causeway.errors import ClaimRefused
from tests.functional.servers.moves_cloud import until

from .known_bugs_cloud import KnownBugsCloud

# The operator's word is all that these hosts are down by: the simulated hypervisors say that their guests run twice meanwhile.
STILL_RUNNING = pytest.mark.expects_errors("while another host runs it")


def forced_onto(cloud: KnownBugsCloud, host: str, **fields: Any) -> Any:
    """An ACTIVE server for which an administrator named the host."""
    server = cloud.ask_for(who=cloud.admin, availability_zone=f"nova:{host}", **fields)
    found = cloud.wait(server, "ACTIVE")
    assert found.compute_host == host
    return found


def evacuated(cloud: KnownBugsCloud, *servers: Any) -> list[Any]:
    """The servers of a host that is forced down, when they run elsewhere."""
    for server in servers:
        # Until 2.95 it is ACTIVE afterwards.
        answer = cloud.act(server, {"evacuate": {}}, who=cloud.admin, version="2.94")
        assert answer.status_code == 200, answer.text
    cloud.settle()
    return [cloud.wait(server, "ACTIVE") for server in servers]


def test_the_host_that_a_server_was_forced_onto_binds_no_later_move(
    cloud: KnownBugsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1845291: also a move whose first target refuses, and a live one."""
    server = forced_onto(cloud, "cell1-host2")
    cloud.attach(server, cloud.volume())
    refused: list[str] = []
    for host in ("cell2-host1", "cell2-host2"):

        def refuse(_info: Any, host: str = host) -> None:
            if not refused:
                refused.append(host)
                raise ClaimRefused("This host has no more room.")

        monkeypatch.setattr(cloud.driver(host), "check_volume_connectable", refuse)
    # A cell with two targets is left.
    with cloud.service_with("cell1-host1", status="disabled"):
        assert cloud.act(server, {"migrate": None}, who=cloud.admin).status_code == 202
        there = cloud.wait(server, "VERIFY_RESIZE").compute_host
    assert there.startswith("cell2") and [there] != refused
    cloud.confirmed(server)
    live = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
    assert cloud.act(server, live, who=cloud.admin).status_code == 202
    cloud.settle()
    assert [cloud.wait(server, "ACTIVE").compute_host] == refused


def test_an_unshelve_that_the_network_service_refuses_leaves_nothing(cloud: KnownBugsCloud) -> None:
    """1862633: the server is SHELVED_OFFLOADED as before, holds nothing, and comes up when it is asked for again."""
    cloud.needs_devcloud("the network service refuses to bind a port")
    cloud.option("shelved_offload_time", 0)
    server = cloud.boot()
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.without_patience()
    cloud.fail("status", "/ports/", service="network", method="PUT", status=409, times=1)
    assert cloud.act(server, {"unshelve": None}).status_code == 202
    cloud.settle()
    found = cloud.wait(server, "SHELVED_OFFLOADED")
    assert "Error" in {result for _event, result in cloud.events(server, "unshelve")}
    assert (found.compute_host, cloud.allocations(server.id), cloud.hosts_of(server)) == (None, {}, {})
    cloud.heal()
    assert cloud.act(server, {"unshelve": None}).status_code == 202
    cloud.wait(server, "ACTIVE")
    assert [host for _status, host, _bindings in cloud.ports(server).values()] == [cloud.show(server).compute_host]


@STILL_RUNNING
def test_members_of_a_group_that_was_deleted_are_moved_evacuated_and_rebuilt(cloud: KnownBugsCloud) -> None:
    """1890244: the policy ends with the group."""
    group = cloud.member.compute.create_server_group(name="apart", policy="anti-affinity")
    first, second = (cloud.boot(scheduler_hints={"group": group.id}) for _ in range(2))
    home, other = (cloud.show(each).compute_host for each in (first, second))
    assert home != other
    cloud.member.compute.delete_server_group(group, ignore_missing=False)

    assert cloud.act(first, {"migrate": None}, who=cloud.admin).status_code == 202
    # Only the host of the second one is left.
    assert cloud.wait(first, "VERIFY_RESIZE").compute_host == other
    cloud.confirmed(first)
    with cloud.service_with(other, forced_down=True):
        (moved,) = evacuated(cloud, second)
        assert moved.compute_host == home
    assert cloud.act(second, {"rebuild": {"imageRef": cloud.image_id}}).status_code == 202
    cloud.settle()
    assert cloud.wait(second, "ACTIVE").compute_host == home
    until(lambda: cloud.hosts_of(second), lambda found: found == {home: "guest"}, "its former host to be clean")


@STILL_RUNNING
def test_a_host_that_is_up_again_keeps_nothing_of_servers_that_were_evacuated(cloud: KnownBugsCloud) -> None:
    """1922053, 1794996, 1764883: it ran all the time, and one of the servers was deleted before it was called up again."""
    away, stays, deleted = "cell1-host1", *(forced_onto(cloud, "cell1-host1", flavor_id="gen1.small") for _ in range(2))
    with cloud.service_with(away, forced_down=True):
        assert {each.compute_host for each in evacuated(cloud, stays, deleted)} == {"cell1-host2"}
        cloud.member.compute.delete_server(deleted.id)
        cloud.gone(deleted)
    until(
        lambda: (cloud.hosts_of(stays), cloud.hosts_of(deleted)),
        lambda found: found == ({"cell1-host2": "guest"}, {}),
        "the host to be clean",
    )
    assert (list(cloud.allocations(stays.id)), cloud.allocations(deleted.id)) == (["cell1-host2"], {})
    until(lambda: cloud.audit().disagreements, lambda found: found == [], "everything to agree")
    assert cloud.show(stays).status == "ACTIVE"
    forced_onto(cloud, away)
