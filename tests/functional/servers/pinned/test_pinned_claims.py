"""Claims of NUMA cells, pinned CPUs and PCI devices: who races, who comes late, who dies; and what users learn."""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable
from typing import Any

import openstack
import pytest

from causeway import errors
from causeway.compute.host.claims import Claims
from causeway.conductor.upkeep import cleaning
from causeway.conductor.upkeep.evacuated import EvacuatedEndpoint
from causeway.context import admin_context
from causeway.hosts.cleanups import missed_order
from causeway.model.missed import Missed
from causeway.model.outcomes import OperationToken
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import cleanups, journal, mappings, migrations
from causeway.store.cell import hosts, pci_devices
from tests.functional.servers import pinned_cloud
from tests.functional.servers.moves_cloud import PATIENCE, Cloud, until
from tests.functional.servers.pinned_cloud import (
    NOTHING,
    claims_of,
    guest_topology,
    held,
    make_flavor,
    nothing_held,
    pinned,
)

CLOUD = pinned_cloud.CLOUD


def on_both_hosts_of_cell1(cloud: Cloud, flavor: str) -> dict[str, Any]:
    servers = [cloud.boot(f"first-{number}", flavor=flavor) for number in range(2)]
    found = {cloud.show(server).compute_host: server for server in servers}
    assert len(found) == 2
    return found


@pytest.mark.parametrize("answer", ["refused", "lost"])
def test_a_target_that_refuses_or_does_not_answer_keeps_nothing(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """The next alternate takes the server (bugs 1986838, 1860555: a claim that fails must not continue, or stay)."""
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    source = cloud.show(server).compute_host
    refused: list[str] = []
    real = Claims.claim

    def claim(self: Claims, instance: Any, migration_uuid: str | None) -> Any:
        if not refused:
            refused.append(self._host)
            raise errors.ClaimRefused("Somebody else was quicker.")
        return real(self, instance, migration_uuid)

    if answer == "refused":
        monkeypatch.setattr(Claims, "claim", claim)
    else:
        cloud.lose("prep_snapshot_based_resize_at_dest", Verdict.LOSE_REPLY)
    moved = cloud.resized(server, pinned(cloud, "pinned.4.2", 4, gen="2"))
    assert sorted(claims_of(cloud, server)) == sorted([source, moved.compute_host])
    (other,) = {"cell2-host1", "cell2-host2"} - {moved.compute_host}
    assert held(cloud, other) == NOTHING
    events = cloud.events(server, "resize")
    assert [result for event, result in events if event == "compute_prep_snapshot_based_resize_at_dest"] == [
        "Error",
        "Success",
    ]
    cloud.reverted(server)
    assert claims_of(cloud, server) == [source]


@pytest.mark.embedded("looks into computes and conductors, and at calls")
def test_a_target_that_does_not_answer_at_all_gets_its_order_later(cloud: Cloud) -> None:
    """It claimed, and does not hear that it was abandoned for the next one."""
    services = cloud.embedded.conductor._services
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    source = cloud.show(server).compute_host
    deaf: list[str | None] = []

    def on_send(message: Outgoing) -> Verdict:
        if message.method == "prep_snapshot_based_resize_at_dest" and not deaf:
            deaf.append(message.server)
            return Verdict.LOSE_REPLY
        is_lost = message.method == "drop_move_claim" and message.server in deaf
        return Verdict.LOSE_REQUEST if is_lost else Verdict.DELIVER

    cloud.embedded.around.transports.on_send = on_send
    target = cloud.resized(server, pinned(cloud, "pinned.4.2", 4, gen="2")).compute_host
    cloud.settle()
    assert sorted(claims_of(cloud, server)) == sorted([source, target, *deaf])
    cloud.heal()
    cleaned(cloud)
    assert sorted(claims_of(cloud, server)) == sorted([source, target])
    assert held(cloud, target)["cpus"] == [4, 5, 6, 7]
    assert cleanups.listed(services.api) == []
    cloud.confirmed(server)
    assert claims_of(cloud, server) == [target]


def cleaned(cloud: Cloud) -> None:
    """Conductors look, as they do from time to time, until nothing is left anywhere."""
    services = cloud.embedded.conductor._services

    def look() -> Any:
        cleaning.look(services)
        return cleanups.listed(services.api)

    until(
        look,
        lambda left: not left,
        "all hosts to be clean",
    )


def left_by_an_earlier_try(cloud: Cloud, server: Any, what: Missed) -> str:
    """What another move of the server's migration left on the host that the present one chose."""
    services = cloud.embedded.conductor._services
    (migration,) = migrations.search(services.api, instance_uuid=server.id)
    host, cell_uuid = migration.dest_compute or "", migration.dest_cell or ""
    token = OperationToken(str(uuid.uuid4()), migration.uuid, 1, "ReserveTarget")
    with services.api.write() as connection:
        missed = missed_order(host, what, cloud.record(server, "cell1"), token)
        cleanups.note_in(connection, host, cell_uuid, missed)
    return host


@pytest.mark.embedded("looks into computes and conductors, and at calls")
def test_what_an_earlier_try_of_a_move_left_is_not_taken_from_the_one_that_succeeded(cloud: Cloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    target = cloud.resized(server, pinned(cloud, "pinned.4.2", 4, gen="2")).compute_host
    cloud.settle()
    for what in (Missed.RELEASE_CLAIM, Missed.UNDO):
        assert left_by_an_earlier_try(cloud, server, what) == target
    cleaned(cloud)
    assert target in claims_of(cloud, server)
    assert cloud.hosts_of(server)[target] == "guest"
    cloud.confirmed(server)


@pytest.mark.embedded("looks into computes and conductors, and at calls")
def test_what_an_earlier_try_of_a_move_left_waits_for_the_end_of_the_present_one(cloud: Cloud) -> None:
    services = cloud.embedded.conductor._services
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    with cloud.held("finish_snapshot_based_resize_at_dest") as reached:
        cloud.member.compute.resize_server(server.id, pinned(cloud, "pinned.4.2", 4, gen="2"))
        assert reached.wait(PATIENCE)
        for what in (Missed.RELEASE_CLAIM, Missed.UNDO):
            target = left_by_an_earlier_try(cloud, server, what)
        EvacuatedEndpoint(services).clean_evacuated(admin_context(), host=target)
        assert target in claims_of(cloud, server)
        assert len(cleanups.listed(services.api)) == 2
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    cleaned(cloud)
    assert guest_topology(cloud, server)[0] is not None


def test_those_that_race_for_the_last_cpus_get_cpus_of_their_own(cloud: Cloud) -> None:
    """Each gets CPUs of its own, one of them on the next host."""
    small, large = pinned(cloud, "pinned.2", gen="1"), pinned(cloud, "pinned.4.2", 4, gen="2")
    # Four CPUs are left on either host: two servers of four on two hosts, in two cells each.
    fillers = [cloud.boot(f"filler-{number}", flavor=large) for number in range(2)]
    racers = [cloud.boot(f"racer-{number}", flavor=small) for number in range(2)]
    threads = [
        threading.Thread(target=lambda s=server: cloud.connection("demo").compute.resize_server(s.id, large))
        for server in racers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for server in racers:
        cloud.wait(server, "VERIFY_RESIZE")
    for host in ("cell2-host1", "cell2-host2"):
        servers = [s for s in [*fillers, *racers] if cloud.show(s).compute_host == host]
        cpus = [cpu for server in servers for cpu in _cpus(cloud, server)]
        assert len(cpus) == len(set(cpus)) and sorted(cpus) == held(cloud, host)["cpus"]
    extra = cloud.boot("extra", flavor=small)
    cloud.member.compute.resize_server(extra.id, large)
    cloud.failed(extra)
    assert "2 are full on PCPU" in cloud.faults(extra)[0].message


def _cpus(cloud: Cloud, server: Any) -> list[int]:
    topology, _devices = guest_topology(cloud, server)
    assert topology is not None
    return [host for cell in topology.cells for host in cell.cpu_pinning.values()]


@pytest.mark.embedded("looks into computes and conductors, and at calls")
def test_claims_outlive_the_compute(cloud: Cloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.nic", gen="1", pci_passthrough__alias="nic:1"))
    target = cloud.resized(server, pinned(cloud, "pinned.4.2", 4, gen="2")).compute_host
    for host in (cloud.record(server, "cell1").host, target):
        assert host is not None
        service = cloud.parts.computes[host]
        before = service.host.claims
        again = Claims(before._directory, host, limits=before._limits)
        again.load(before._topology, before._devices)
        assert again.topology() == before.topology()
        assert (again.devices(), again.listed()) == (before.devices(), before.listed())


@pytest.mark.embedded("looks into computes and conductors, and at calls")
def test_a_host_that_starts_for_the_first_time_claims_what_its_servers_hold(cloud: Cloud) -> None:
    """They may have come from another compute service, or the host's folder was lost."""
    server = cloud.boot(flavor=pinned(cloud, "pinned.nic", gen="1", pci_passthrough__alias="nic:1"))
    target = cloud.resized(server, pinned(cloud, "pinned.4.2", 4, gen="2")).compute_host
    for host in (cloud.record(server, "cell1").host, target):
        assert host is not None
        reporter = cloud.parts.computes[host]._reporter
        claims = reporter._host.claims
        before = claims.topology(), claims.devices(), claims.listed()
        shutil.rmtree(claims._directory)
        claims._claims.clear()
        claims.load(claims._topology, claims._devices)
        assert claims.listed() == []
        with pytest.raises(errors.ClaimRefused, match="does not know at present"):
            claims.check(cloud.record(server, "cell1"))
        # It may die here.
        claims.load(claims._topology, claims._devices)
        assert claims.is_unread
        reporter.restore_claims()
        assert (claims.topology(), claims.devices(), claims.listed()) == before
        assert not claims.is_unread


def tear_claim(cloud: Cloud, server: Any, host: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The compute is started again, and what it wrote down of the server's claims can't be read.

    What is returned has it ask the conductor, which it does not do by itself.
    """
    reporter = cloud.parts.computes[host]._reporter
    restore: Callable[[], None] = reporter.restore_claims
    monkeypatch.setattr(reporter, "restore_claims", lambda: None)
    claims = reporter._host.claims
    (claims._directory / f"{server.id}.json").write_bytes(b"")
    claims._claims.clear()
    claims.load(claims._topology, claims._devices)
    assert claims.torn() == [server.id]
    return restore


@pytest.mark.parametrize("turned", [False, True], ids=["chosen", "alternate"])
@pytest.mark.expects_errors("json is torn")
def test_a_promised_device_is_kept_for_its_guest(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, turned: bool) -> None:
    """The target's cell knows what was promised: nobody else gets it, and the guest has it."""
    server = cloud.boot(flavor=pinned(cloud, "pinned.nic", gen="1", pci_passthrough__alias="nic:1"))
    before = held(cloud, cloud.show(server).compute_host)
    flavor = pinned(cloud, "pinned.nic.2", gen="2", pci_passthrough__alias="nic:1")
    if turned:
        cloud.break_driver(["cell2-host1", "cell2-host2"], "inspect", times=1)
    with cloud.held("finish_snapshot_based_resize_at_dest") as reached:
        cloud.member.compute.resize_server(server.id, flavor)
        assert reached.wait(60)
        target = cloud.migration(server).dest_compute
        restore = tear_claim(cloud, server, target, monkeypatch)
        restore()
        assert held(cloud, target) == before
    assert cloud.wait(server, "VERIFY_RESIZE").compute_host == target
    assert guest_topology(cloud, server) == (cloud.record(server, "cell2").numa_topology, [pinned_cloud.FIRST])
    assert held(cloud, target) == before
    prepared = [
        result for event, result in cloud.events(server, "resize") if "prep_snapshot_based_resize_at_dest" in event
    ]
    assert sorted(prepared) == (["Error", "Success"] if turned else ["Success"])
    cloud.reverted(server)
    assert held(cloud, target) == NOTHING


@pytest.mark.expects_errors("json is torn")
def test_the_guest_waits_until_it_is_known_what_was_claimed(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    with cloud.held("finish_snapshot_based_resize_at_dest") as reached:
        cloud.member.compute.resize_server(server.id, pinned(cloud, "pinned.4.2", 4, gen="2"))
        assert reached.wait(60)
        target = cloud.migration(server).dest_compute
        restore = tear_claim(cloud, server, target, monkeypatch)

    def failed_once() -> bool:
        return ("compute_finish_snapshot_based_resize_at_dest", "Error") in [
            (event.event, event.result) for step in steps_of(cloud, server) for event in step.events or ()
        ]

    until(failed_once, bool, "the target to refuse")
    restore()
    assert cloud.wait(server, "VERIFY_RESIZE").compute_host == target
    assert guest_topology(cloud, server)[0] == cloud.record(server, "cell2").numa_topology
    assert held(cloud, target)["cpus"] == [4, 5, 6, 7]


def steps_of(cloud: Cloud, server: Any) -> list[Any]:
    (move,) = journal.of_migration(cloud.parts.api_database, cloud.migration(server).uuid)
    return journal.steps(cloud.parts.api_database, move.id)


@pytest.mark.embedded("looks into computes and conductors, and at calls")
def test_a_claim_that_comes_after_it_was_abandoned_is_refused(cloud: Cloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    source = cloud.show(server).compute_host
    cloud.without_patience()
    cloud.without_rounds()
    cloud.fail("status", "/file$", method="PUT", status=503)
    cloud.member.compute.resize_server(server.id, pinned(cloud, "pinned.4.2", 4, gen="2"))
    cloud.failed(server)
    migration = cloud.migration(server)
    fence = cloud.parts.computes[migration.dest_compute].host.fence
    (move,) = journal.of_migration(cloud.parts.api_database, migration.uuid)
    with pytest.raises(errors.ClaimRefused):
        fence.refuse_after(OperationToken(move.id, migration.uuid, 99, "ReserveTarget"), "drop_move_claim")
    assert claims_of(cloud, server) == [source]


def test_a_move_that_failed_does_not_count_for_the_next_one(cloud: Cloud) -> None:
    """Bug 1600304: claims are of a migration; the next one of the server starts from nothing, and ends nothing else."""
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    source = cloud.show(server).compute_host
    large = pinned(cloud, "pinned.4.2", 4, gen="2")
    cloud.without_patience()
    cloud.without_rounds()
    cloud.fail("status", "/file$", method="PUT", status=503)
    cloud.member.compute.resize_server(server.id, large)
    cloud.failed(server)
    cloud.heal()
    target = cloud.resized(server, large).compute_host
    assert sorted(claims_of(cloud, server)) == sorted([source, target])
    assert (held(cloud, source)["cpus"], held(cloud, target)["cpus"]) == ([4, 5], [4, 5, 6, 7])
    cloud.confirmed(server)
    assert claims_of(cloud, server) == [target]


def test_confirm_and_revert_that_fail_on_the_way_count_neither_twice_nor_not_at_all(cloud: Cloud) -> None:
    """Bugs 1879878, 1834349: the source's claim ends when the confirm has done its work there, not before."""
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    source = cloud.show(server).compute_host
    target = cloud.resized(server, pinned(cloud, "pinned.4.2", 4, gen="2")).compute_host
    # The order arrives and its answer does not: it is asked for again.
    cloud.lose("confirm_snapshot_based_resize_at_source", Verdict.LOSE_REPLY)
    cloud.confirmed(server)
    assert claims_of(cloud, server) == [target]
    assert held(cloud, source) == NOTHING
    cloud.resized(server, "pinned.2")
    cloud.lose("drop_move_at_dest", Verdict.LOSE_REPLY)
    cloud.reverted(server)
    assert claims_of(cloud, server) == [target]
    assert held(cloud, target)["cpus"] == [4, 5, 6, 7]


def test_the_records_say_what_is_held(cloud: Cloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.nic", gen="1", pci_passthrough__alias="nic:1"))
    host = cloud.show(server).compute_host
    (node,) = hosts.list_nodes(cloud.cell("cell1"), host=host)
    assert node.numa_topology is not None
    assert [cell.pinned_cpus for cell in node.numa_topology.cells] == [[4, 5], []]
    assert sorted(pool.count for pool in node.pci_stats) == [0, 1]
    devices = pci_devices.of_node(cloud.cell("cell1"), node.uuid)
    assert [(device.address, device.status, device.instance_uuid) for device in devices] == [
        (pinned_cloud.FIRST, "allocated", server.id),
        (pinned_cloud.SECOND, "available", None),
    ]
    cloud.clean()
    devices = pci_devices.of_node(cloud.cell("cell1"), node.uuid)
    assert {device.status for device in devices} == {"available"}


def test_nothing_of_what_one_request_asks_for_is_kept_for_the_next(cloud: Cloud) -> None:
    """Bugs 1941005, 1805767 and the reading beside 1785339: each move asks for what its own flavor needs, also after a
    revert."""
    server = cloud.boot(flavor=pinned(cloud, "pinned.nic", gen="1", pci_passthrough__alias="nic:1"))
    api = cloud.parts.api_database
    first = mappings.get_spec(api, server.id)
    assert not {"numa_topology", "pci_requests"} & first.keys()
    cloud.resized(server, make_flavor(cloud, "nics.2", gen="2", pci_passthrough__alias="nic:2"))
    cloud.reverted(server)
    assert mappings.get_spec(api, server.id) == first
    moved = cloud.resized(server, pinned(cloud, "pinned.4.2", 4, gen="2"))
    assert held(cloud, moved.compute_host) == {"cpus": [4, 5, 6, 7], "pages": 0, "devices": []}
    record = cloud.record(server, "cell2")
    assert (record.pci_requests, record.pci_devices) == ([], [])


def test_several_at_once_are_counted_together(cloud: Cloud) -> None:
    flavor = pinned(cloud, "pinned.3", 3, gen="1")
    many = cloud.member.compute.create_server(
        name="many", flavor_id=flavor, image_id=cloud.image_id, networks="none", min_count=4, max_count=4
    )
    assert many.id
    servers = list(cloud.member.compute.servers())
    assert len(servers) == 4
    cpus: dict[str, list[int]] = {}
    for server in servers:
        cloud.wait(server, "ACTIVE")
        cpus.setdefault(cloud.show(server).compute_host, []).extend(_cpus(cloud, server))
    assert all(len(each) == len(set(each)) for each in cpus.values())
    cloud.clean()
    assert nothing_held(cloud)


def test_users_see_the_topology_and_administrators_the_pinning(cloud: Cloud) -> None:
    flavor = pinned(cloud, "topology", 2, hw__numa_nodes="2", hw__mem_page_size="2048")
    server = cloud.boot(flavor=flavor)

    def topology(user: Any) -> Any:
        answer = user.compute.get(f"/servers/{server.id}/topology", microversion="2.78")
        return answer.json()

    seen = {"memory_mb": 64, "siblings": []}
    assert topology(cloud.member) == {
        "nodes": [{**seen, "vcpu_set": [0]}, {**seen, "vcpu_set": [1]}],
        "pagesize_kb": 2048,
    }
    nodes = topology(cloud.admin)["nodes"]
    assert [(node["host_node"], node["cpu_pinning"]) for node in nodes] == [(0, {"0": 4}), (1, {"1": 12})]


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ({"hw__numa_nodes": "3"}, "cannot be evenly distributed"),
        ({"hw__cpu_policy": "some"}, "CPU policy requested"),
        ({"pci_passthrough__alias": "gpu:1"}, "PCI alias gpu is not defined"),
    ],
)
def test_flavors_that_contradict_themselves_are_refused(cloud: Cloud, specs: dict[str, Any], message: str) -> None:
    bad = make_flavor(cloud, f"bad.{message[:3]}", vcpus=2, **specs)
    server = cloud.boot(flavor="any.small")
    before = cloud.reality(server)
    with pytest.raises(openstack.exceptions.BadRequestException, match=message):
        cloud.member.compute.resize_server(server.id, bad)
    with pytest.raises(openstack.exceptions.BadRequestException, match=message):
        cloud.boot("other", flavor=bad)
    assert cloud.reality(server) == before
    assert len(list(cloud.member.compute.servers())) == 1


def test_a_server_that_fits_nowhere_says_why(cloud: Cloud) -> None:
    flavor = make_flavor(cloud, "nics.3", pci_passthrough__alias="nic:3")
    server = cloud.member.compute.create_server(
        name="server", flavor_id=flavor, image_id=cloud.image_id, networks="none"
    )
    found = until(lambda: cloud.show(server), lambda seen: seen.fault is not None, "the server's fault")
    assert "4 have too few free PCI devices for alias nic (needs 3, 2 free)" in found.fault["message"]


def test_an_offloaded_server_holds_nothing_and_is_pinned_anew_when_it_is_back(cloud: Cloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.nic", gen="1", pci_passthrough__alias="nic:1"), networks="none")
    cloud.option("shelved_offload_time", 0)
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    assert nothing_held(cloud)
    cloud.member.compute.unshelve_server(server.id)
    host = cloud.wait(server, "ACTIVE").compute_host
    assert held(cloud, host) == {"cpus": [4, 5], "pages": 0, "devices": [pinned_cloud.FIRST]}
    assert guest_topology(cloud, server)[1] == [pinned_cloud.FIRST]
    assert cloud.record(server, "cell1").numa_topology == guest_topology(cloud, server)[0]
