"""Known bugs, section 4: request specs, and where servers are put. See docs/known-bugs.md."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.errors import ClaimRefused
from causeway.rpc.transport import Outgoing, Verdict
from causeway.scheduler.request import PERSISTED, RequestSpec
from causeway.store.api import mappings
from tests.functional.servers.moves_cloud import until

from .known_bugs_cloud import KnownBugsCloud


def other_host(host: str) -> str:
    return host[:-1] + ("2" if host.endswith("1") else "1")


def asked_for(cloud: KnownBugsCloud) -> list[RequestSpec]:
    """Every spec that the scheduler is asked with from now on."""
    specs: list[RequestSpec] = []

    def on_send(message: Outgoing) -> Verdict:
        if message.method == "select_destinations":
            specs.append(message.arguments["spec"])
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    return specs


@pytest.mark.embedded("looks at calls")
def test_nothing_of_one_move_is_kept_for_the_next(cloud: KnownBugsCloud) -> None:
    """1669054, 1797580, 1718512: not the host to leave, not the host to go to, not the tries."""
    server = cloud.boot(flavor="any.small")
    home = cloud.show(server).compute_host
    specs = asked_for(cloud)
    for target in (other_host(home), home):
        # Back to where it was, at once: nobody remembers that it was to be left.
        cloud.admin.compute.migrate_server(server.id, host=target)
        assert cloud.wait(server, "VERIFY_RESIZE").compute_host == target
        assert specs[-1].requested_destination is not None and specs[-1].ignore_hosts
        assert set(cloud.spec(server)) <= PERSISTED
        cloud.confirmed(server)
    cloud.without_patience()
    cloud.lose("prep_snapshot_based_resize_at_dest", times=9)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert set(cloud.spec(server)) <= PERSISTED
    assert cloud.spec(server)["flavor"]["flavorid"] == "any.small"


@pytest.mark.embedded("looks at calls")
def test_a_move_that_an_administrator_asks_for_is_the_owners(cloud: KnownBugsCloud) -> None:
    """1774205, 1675607: tenant isolation looks at the owner's project, and Placement counts for the owner."""
    server = cloud.show(cloud.boot(flavor="any.small"))
    operator = cloud.connection("admin")
    assert operator.current_project_id != server.project_id
    specs = asked_for(cloud)
    operator.compute.migrate_server(server.id)
    cloud.wait(server, "VERIFY_RESIZE")
    assert [(spec.project_id, spec.user_id) for spec in specs] == [(server.project_id, server.user_id)]
    for consumer in (server.id, cloud.migration(server).uuid):
        held = cloud.other_placement.get_allocations(consumer)
        assert (held.project_id, held.user_id) == (server.project_id, server.user_id)
    assert (cloud.spec(server)["project_id"], cloud.spec(server)["user_id"]) == (server.project_id, server.user_id)
    operator.compute.confirm_server_resize(server.id)
    cloud.wait(server, "ACTIVE")


@pytest.mark.embedded("looks at calls")
def test_a_server_keeps_its_group_and_hints_through_moves(cloud: KnownBugsCloud) -> None:
    """1830747: uuid and policy, there and back."""
    group = cloud.member.compute.create_server_group(name="apart", policy="anti-affinity")
    server = cloud.boot(flavor="any.small", scheduler_hints={"group": group.id, "colour": "blue"})
    before = cloud.spec(server)
    assert before["server_group"]["uuid"] == group.id
    for flavor, end in (("gen2.small", cloud.reverted), ("any.medium", cloud.confirmed)):
        specs = asked_for(cloud)
        cloud.resized(server, flavor)
        assert specs[0].server_group is not None and specs[0].server_group.uuid == group.id
        end(server)
        after = cloud.spec(server)
        assert (after["server_group"], after["scheduler_hints"]) == (before["server_group"], before["scheduler_hints"])
    cloud.member.compute.delete_server(server.id)
    cloud.gone(server)
    cloud.member.compute.delete_server_group(group)


def test_an_alternate_host_brings_its_zone_along(cloud: KnownBugsCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """1781286: a second try asks nobody for the zone; it came with the selection."""
    hosts = {"cell2-host1": "left", "cell2-host2": "right"}
    made = []
    for host, zone in hosts.items():
        aggregate = cloud.admin.compute.create_aggregate(name=zone, availability_zone=zone)
        cloud.admin.compute.add_host_to_aggregate(aggregate, host)
        made.append((aggregate, host))
    refused: list[str] = []
    for host in hosts:

        def refuse(_info: Any, host: str = host) -> None:
            if not refused:
                refused.append(host)
                raise ClaimRefused("This host has no more room.")

        monkeypatch.setattr(cloud.driver(host), "check_volume_connectable", refuse)
    try:
        server = cloud.boot()
        cloud.attach(server, cloud.volume())
        # Moves leave zones only where that is allowed.
        cloud.option("move_keeps_availability_zone", False, group="scheduler")
        cloud.option("cross_az_attach", True, group="cinder")
        moved = cloud.resized(server)
        assert refused and moved.compute_host not in refused
        assert moved.availability_zone == hosts[moved.compute_host]
        assert cloud.reverted(server).availability_zone == "nova"
    finally:
        cloud.clean()
        for aggregate, host in made:
            cloud.admin.compute.remove_host_from_aggregate(aggregate, host)
            cloud.admin.compute.delete_aggregate(aggregate)


def test_a_zone_that_the_user_asked_for_binds_moves_too(cloud: KnownBugsCloud) -> None:
    """1819963: before a move, during it, and after its revert."""
    aggregate = cloud.admin.compute.create_aggregate(name="mine", availability_zone="mine")
    for host in ("cell1-host1", "cell2-host1"):
        cloud.admin.compute.add_host_to_aggregate(aggregate, host)
    try:
        server = cloud.boot(flavor="any.small", availability_zone="mine")
        home = cloud.show(server).compute_host
        moved = cloud.resized(server, "any.medium")
        assert {home, moved.compute_host} == {"cell1-host1", "cell2-host1"}
        assert moved.availability_zone == "mine"
        assert cloud.reverted(server).availability_zone == "mine"
        assert cloud.spec(server)["availability_zone"] == "mine"
    finally:
        cloud.clean()
        for host in ("cell1-host1", "cell2-host1"):
            cloud.admin.compute.remove_host_from_aggregate(aggregate, host)
        cloud.admin.compute.delete_aggregate(aggregate)


@pytest.mark.parametrize("policy", ["affinity", "anti-affinity"])
def test_hosts_are_seen_as_they_are_right_after_a_confirm(cloud: KnownBugsCloud, policy: str) -> None:
    """1869050: a member of a group counts where it is, and no longer where it was."""
    group = cloud.member.compute.create_server_group(name=policy, policy=policy)
    server = cloud.boot(flavor="any.small", scheduler_hints={"group": group.id})
    home = cloud.show(server).compute_host
    cloud.admin.compute.migrate_server(server.id, host=other_host(home))
    there = cloud.wait(server, "VERIFY_RESIZE").compute_host
    cloud.confirmed(server)
    wanted = there if policy == "affinity" else home
    given = {"image_id": cloud.image_id, "networks": "none", "flavor_id": "any.small", "host": wanted}
    other = cloud.admin.compute.create_server(name="other", scheduler_hints={"group": group.id}, **given)
    assert cloud.wait(other, "ACTIVE").compute_host == wanted
    cloud.clean()
    cloud.member.compute.delete_server_group(group)


def test_a_spec_of_another_version_serves_moves(cloud: KnownBugsCloud) -> None:
    """1843090: what is missing has its default, what is unknown is passed over; also when the first host refuses."""
    server = cloud.boot()
    spec = cloud.spec(server)
    old = {name: spec[name] for name in ("instance_uuid", "project_id", "user_id", "flavor", "image")}
    with cloud.parts.api_database.write() as connection:
        mappings.save_spec_in(
            connection,
            server.id,
            old | {"retry": {"num_attempts": 3, "hosts": [["cell2-host1", "x"]]}, "ignore_hosts": ["cell2-host1"]},
        )
    with cloud.service_with("cell2-host2", status="disabled"):
        assert cloud.resized(server).compute_host == "cell2-host1"
    assert cloud.reverted(server).status == "ACTIVE"


@pytest.mark.parametrize("power", ["ACTIVE", "SHUTOFF"])
def test_a_cold_migration_that_could_only_stay_fails_and_changes_no_state(cloud: KnownBugsCloud, power: str) -> None:
    """1811235, 1748697: the host that it is on is never chosen, and a stopped server stays stopped."""
    server = cloud.boot(flavor="any.small")
    if power == "SHUTOFF":
        cloud.member.compute.stop_server(server.id)
        cloud.wait(server, "SHUTOFF")
    before = cloud.reality(server)
    home = before["shown"][3]
    others = [host for host in cloud.parts.computes if host != home]
    paths = {host: f"/os-services/{cloud.service(host).id}" for host in others}
    for path in paths.values():
        cloud.admin.compute.put(path, json={"status": "disabled"}, microversion="2.53")
    try:
        assert cloud.act(server, {"migrate": {"host": home}}, who=cloud.admin).status_code == 400
        assert cloud.act(server, {"migrate": None}, who=cloud.admin).status_code == 202
        until(lambda: cloud.migration(server), lambda found: found.status == "error", "the migration to fail")
        cloud.wait(server, power)
    finally:
        for path in paths.values():
            cloud.admin.compute.put(path, json={"status": "enabled"}, microversion="2.53")
    assert cloud.reality(server) == before
