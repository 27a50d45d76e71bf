"""Servers of groups that move: members in every cell count, also while two moves race for the same host.

Two schedulers that know nothing of each other are played by one that does not remember what it picked: what it chooses then is
what the databases say, and the late check of the conductor is all that keeps members apart.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from causeway.moves.move_run import Run
from causeway.moves.steps.select import SelectDestination
from causeway.scheduler.group_picks import GroupPicks
from causeway.store.api import group_claims
from tests.functional.servers.moves_cloud import Cloud, until

# All hosts of a cell weigh the same: who is asked alike chooses alike.
EVEN = {f"{name}_weight_multiplier": 0.0 for name in ("ram", "cpu", "disk", "num_instances", "io_ops")}
CLOUD = {"hosts_per_cell": 3, "overrides": {"filter_scheduler": EVEN, "quota": {"instances": -1, "cores": -1}}}


@pytest.fixture
def make_group(cloud: Cloud) -> Iterator[Any]:
    made = []

    def make(policy: str, **rules: Any) -> Any:
        body = {"server_group": {"name": policy, "policy": policy} | ({"rules": rules} if rules else {})}
        answer = cloud.member.compute.post("/os-server-groups", json=body, microversion="2.64")
        made.append(answer.json()["server_group"]["id"])
        return made[-1]

    yield make
    for group in made:
        cloud.member.compute.delete(f"/os-server-groups/{group}")


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedulers that don't know what others have just picked."""
    monkeypatch.setattr(GroupPicks, "seen", lambda _self, _group, _members, in_databases: in_databases)


@pytest.fixture(autouse=True)
def no_claims_left(cloud: Cloud) -> Iterator[None]:
    yield
    cloud.settle()
    with cloud.parts.api_database.read() as connection:
        assert connection.execute(sa.select(group_claims.TABLE)).all() == []


def boot(cloud: Cloud, group: str, flavor: str = "gen1.small", **fields: Any) -> Any:
    return cloud.boot(flavor=flavor, scheduler_hints={"group": group}, **fields)


def both_choose_before_either_continues(monkeypatch: pytest.MonkeyPatch, count: int = 2) -> None:
    """Moves that have chosen their host wait for each other."""
    chosen, choose = threading.Barrier(count, timeout=20), SelectDestination.do

    def wait(self: SelectDestination, run: Run) -> None:
        choose(self, run)
        chosen.wait()

    monkeypatch.setattr(SelectDestination, "do", wait)


@pytest.mark.usefixtures("strangers")
def test_members_that_race_to_one_host_of_another_cell_end_on_two(
    cloud: Cloud, make_group: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = make_group("anti-affinity")
    servers = [boot(cloud, group), boot(cloud, group)]
    both_choose_before_either_continues(monkeypatch)
    for server in servers:
        cloud.member.compute.resize_server(server.id, "gen2.small")
    hosts = [cloud.wait(server, "VERIFY_RESIZE").compute_host for server in servers]
    assert len(set(hosts)) == 2 and all(host.startswith("cell2") for host in hosts)
    tried = Counter(
        event for server in servers for event in cloud.events(server, "resize") if event[0].startswith("compute_prep")
    )
    # One of them was refused the host that both had chosen, and took its next alternate.
    assert tried["compute_prep_snapshot_based_resize_at_dest", "Error"] == 1
    for server in servers:
        cloud.reverted(server)
    assert len({cloud.show(server).compute_host for server in servers}) == 2


@pytest.mark.usefixtures("strangers")
def test_the_loser_is_restored_if_there_is_no_other_host(
    cloud: Cloud, make_group: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = make_group("anti-affinity")
    servers = [boot(cloud, group, "any.small"), boot(cloud, group, "any.small")]
    free = next(h for h in cloud.parts.computes if h not in {cloud.show(each).compute_host for each in servers})
    before = {server.id: cloud.reality(server) for server in servers}
    both_choose_before_either_continues(monkeypatch)
    for server in servers:
        cloud.admin.compute.migrate_server(server.id, host=free)
    cloud.settle()
    statuses = {server.id: cloud.show(server).status for server in servers}
    assert sorted(statuses.values()) == ["ACTIVE", "VERIFY_RESIZE"]
    (loser,) = [server for server in servers if statuses[server.id] == "ACTIVE"]
    assert cloud.reality(loser) == before[loser.id]
    cell = before[loser.id]["shown"][3][:5]
    assert "Anti-affinity server group policy was violated" in cloud.faults(loser, cell)[-1].message


@pytest.mark.usefixtures("strangers")
def test_a_host_gets_as_many_members_as_the_rule_allows(
    cloud: Cloud, make_group: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = make_group("anti-affinity", max_server_per_host=2)
    servers = [boot(cloud, group) for _number in range(4)]
    both_choose_before_either_continues(monkeypatch, 4)
    for server in servers:
        cloud.member.compute.resize_server(server.id, "gen2.small")
    hosts = Counter(cloud.wait(server, "VERIFY_RESIZE").compute_host for server in servers)
    assert max(hosts.values()) <= 2 and sum(hosts.values()) == 4


@pytest.mark.usefixtures("strangers")
def test_members_whose_builds_race_do_not_share_a_host(cloud: Cloud, make_group: Any) -> None:
    """Six servers and three hosts: three get one each, three get none, and nobody shares."""
    group = make_group("anti-affinity")

    def create(number: int) -> Any:
        return cloud.member.compute.create_server(
            name=f"racer-{number}",
            flavor_id="gen1.small",
            image_id=cloud.image_id,
            networks=[{"uuid": cloud.network_id}],
            scheduler_hints={"group": group},
        )

    with ThreadPoolExecutor(6, thread_name_prefix="racer") as pool:
        servers = list(pool.map(create, range(6)))
    ended = [
        until(partial(cloud.show, server), lambda s: s.status in ("ACTIVE", "ERROR"), "the build to end")
        for server in servers
    ]
    active = [server for server in ended if server.status == "ACTIVE"]
    assert len({server.compute_host for server in active}) == len(active) == 3
    for server in ended:
        if server.status == "ERROR":
            assert server.fault["message"].startswith("No valid host was found.")
            assert cloud.allocations(server.id) == {}


@pytest.mark.usefixtures("strangers")
def test_an_affinity_group_that_is_built_at_once_is_on_one_host(cloud: Cloud, make_group: Any) -> None:
    group = make_group("affinity")
    with ThreadPoolExecutor(3, thread_name_prefix="racer") as pool:
        servers = list(pool.map(lambda _number: boot(cloud, group), range(3)))
    assert len({cloud.show(server).compute_host for server in servers}) == 1


def test_a_member_in_the_other_cell_counts(cloud: Cloud, make_group: Any) -> None:
    group = make_group("anti-affinity")
    there = [boot(cloud, group, "gen2.small") for _number in range(3)]
    assert len({cloud.show(server).compute_host for server in there}) == 3
    server = boot(cloud, group)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert cloud.faults(server)[-1].message.startswith("No valid host was found. 6 hosts: ")
    assert "3 have members of the server's anti-affinity group already" in cloud.faults(server)[-1].message


def test_a_member_that_waits_for_confirm_counts_on_both_hosts(cloud: Cloud, make_group: Any) -> None:
    group = make_group("anti-affinity")
    mover = boot(cloud, group)
    left = cloud.show(mover).compute_host
    cloud.resized(mover)
    stayers = [boot(cloud, group), boot(cloud, group)]
    assert left not in {cloud.show(server).compute_host for server in stayers}
    cloud.reverted(mover)
    assert cloud.show(mover).compute_host == left


def test_an_affinity_group_lets_no_member_move(cloud: Cloud, make_group: Any) -> None:
    group = make_group("affinity")
    one, other = boot(cloud, group, "any.small"), boot(cloud, group, "any.small")
    assert cloud.show(one).compute_host == cloud.show(other).compute_host
    cloud.admin.compute.migrate_server(one.id)
    cloud.failed(one)
    assert "not where the server's affinity group is" in cloud.action(one, "migrate").events[0]["details"]


@pytest.mark.parametrize("policy", ["soft-affinity", "soft-anti-affinity"])
def test_soft_policies_only_prefer(cloud: Cloud, make_group: Any, policy: str) -> None:
    group = make_group(policy)
    servers = [boot(cloud, group) for _number in range(2)]
    together = len({cloud.show(server).compute_host for server in servers}) == 1
    assert together == (policy == "soft-affinity")
    for server in servers:
        cloud.resized(server)
    together = len({cloud.show(server).compute_host for server in servers}) == 1
    assert together == (policy == "soft-affinity")


def test_a_group_that_was_deleted_binds_nobody(cloud: Cloud, make_group: Any) -> None:
    group = make_group("affinity")
    one, other = boot(cloud, group), boot(cloud, group)
    cloud.member.compute.delete(f"/os-server-groups/{group}")
    cloud.resized(one)
    assert cloud.show(one).compute_host != cloud.show(other).compute_host


def test_a_refused_retry_is_not_counted_against_itself(cloud: Cloud, make_group: Any) -> None:
    """A move that failed may be asked for again at once, also to the host that it failed on."""
    group = make_group("anti-affinity")
    server = boot(cloud, group, "any.small")
    target = next(host for host in cloud.parts.computes if host != cloud.show(server).compute_host)
    cloud.fail("status", "/bindings$", service="network", method="POST", status=403)
    cloud.admin.compute.migrate_server(server.id, host=target)
    cloud.failed(server)
    cloud.heal()
    cloud.admin.compute.migrate_server(server.id, host=target)
    assert cloud.wait(server, "VERIFY_RESIZE").compute_host == target


def test_a_server_may_take_the_place_of_one_that_was_deleted(cloud: Cloud, make_group: Any) -> None:
    """At once: three hosts, three members, and nobody waits until the scheduler no longer remembers what it picked."""
    group = make_group("anti-affinity")
    servers = [boot(cloud, group) for _number in range(3)]
    place = cloud.show(servers[0]).compute_host
    cloud.member.compute.delete_server(servers[0].id)
    until(lambda: cloud.admin.compute.find_server(servers[0].id), lambda found: found is None, "the server to go")
    assert cloud.show(boot(cloud, group)).compute_host == place
