"""Servers with SR-IOV ports on the move: a device at the target, the old one kept until confirm, bindings that name them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.rpc.transport import Verdict
from tests.functional.servers import sriov_cloud
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.pinned_cloud import claims_of, guest_topology, nothing_held
from tests.functional.servers.sriov_cloud import (
    FUNCTIONS,
    OTHER_FUNCTIONS,
    boot,
    check_agrees,
    devices_on,
    profile_of,
    profile_on,
)

CLOUD = sriov_cloud.CLOUD
networks, ports = sriov_cloud.networks, sriov_cloud.ports
ENDS = pytest.mark.parametrize("end", ["confirm", "revert"])
WAYS = pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
CELL2 = ("cell2-host1", "cell2-host2")

Break = Callable[[Cloud, Any], None]


def occupied(cloud: Cloud, ports: Any, host: str) -> Any:
    """A server that holds the first function of a host."""
    server = boot(cloud, ports(), name="neighbour", flavor="any.small")
    if cloud.show(server).compute_host != host:
        cloud.admin.compute.migrate_server(server.id, host=host)
        cloud.wait(server, "VERIFY_RESIZE")
        cloud.confirmed(server)
    return server


@ENDS
@WAYS
def test_a_device_is_claimed_at_the_target_and_the_old_one_kept(
    cloud: Cloud, ports: Any, flavor: str, end: str
) -> None:
    first, second = ports(binding_profile={"trusted": "true"}), ports("physnet2", "macvtap")
    server = boot(cloud, first, second)
    source = cloud.show(server).compute_host
    before = (check_agrees(cloud, server, first, second), profile_of(cloud, first), profile_of(cloud, second))
    assert before[0] == [FUNCTIONS[0], OTHER_FUNCTIONS[0]]

    target = cloud.resized(server, flavor).compute_host
    assert target != source and (target[:5] == source[:5]) == (flavor == "any.medium")
    assert devices_on(cloud, source) == devices_on(cloud, target) == before[0]
    check_agrees(cloud, server, first, second)
    assert profile_on(cloud, first, source) == before[1]
    assert profile_on(cloud, second, source) == before[2]

    (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    there, gone = (target, source) if end == "confirm" else (source, target)
    assert cloud.show(server).compute_host == there
    assert claims_of(cloud, server) == [there]
    assert devices_on(cloud, gone) == []
    assert check_agrees(cloud, server, first, second) == before[0]
    assert profile_of(cloud, first)["trusted"] == "true"
    if end == "revert":
        assert (profile_of(cloud, first), profile_of(cloud, second)) == before[1:]
    cloud.clean()
    assert nothing_held(cloud)


@ENDS
@WAYS
def test_the_target_gives_another_device(cloud: Cloud, ports: Any, flavor: str, end: str) -> None:
    """Its address and its profile are the target's, the source's own come back."""
    cell = "cell2" if flavor == "gen2.small" else "cell1"
    port = ports()
    server = boot(cloud, port)
    source = cloud.show(server).compute_host
    before = profile_of(cloud, port)
    targets = [host for host in cloud.parts.computes if host[:5] == cell and host != source]
    for host in targets:
        held = occupied(cloud, ports, host)
        assert devices_on(cloud, host) == FUNCTIONS[:1], held.id
    target = cloud.resized(server, flavor).compute_host
    assert profile_of(cloud, port)["pci_slot"] == FUNCTIONS[1]
    assert profile_on(cloud, port, source) == before
    assert guest_topology(cloud, server)[1] == FUNCTIONS[1:2]
    (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    assert check_agrees(cloud, server, port) == ([FUNCTIONS[1]] if end == "confirm" else [FUNCTIONS[0]])
    assert devices_on(cloud, target) == (FUNCTIONS[:2] if end == "confirm" else FUNCTIONS[:1])


@ENDS
def test_a_resize_on_the_same_host_takes_another_function(cloud: Cloud, ports: Any, end: str) -> None:
    cloud.option("allow_resize_to_same_host", True)
    port = ports()
    server = boot(cloud, port)
    host, before = cloud.show(server).compute_host, profile_of(cloud, port)
    other = next(name for name in cloud.parts.computes if name[:5] == "cell1" and name != host)
    for _function in FUNCTIONS:
        # The other host has none left.
        filler = boot(cloud, ports(), name="filler", flavor="any.small")
        if cloud.show(filler).compute_host != other:
            cloud.admin.compute.migrate_server(filler.id, host=other)
            cloud.wait(filler, "VERIFY_RESIZE")
            cloud.confirmed(filler)
    cloud.resized(server, "any.medium")
    assert cloud.show(server).compute_host == host
    assert devices_on(cloud, host) == FUNCTIONS[:2]
    assert profile_of(cloud, port)["pci_slot"] == FUNCTIONS[1]
    (cloud.confirmed if end == "confirm" else cloud.reverted)(server)
    assert check_agrees(cloud, server, port) == ([FUNCTIONS[1]] if end == "confirm" else [FUNCTIONS[0]])
    if end == "revert":
        assert profile_of(cloud, port) == before


def test_a_cold_migration_to_a_host_without_a_device_is_refused(cloud: Cloud, ports: Any) -> None:
    port = ports("physnet2")
    server = boot(cloud, port)
    source, before = cloud.show(server).compute_host, cloud.reality(server)
    for host in (host for host in cloud.parts.computes if host != source):
        for _function in OTHER_FUNCTIONS:
            filler = boot(cloud, ports("physnet2"), name="filler", flavor="any.small")
            if cloud.show(filler).compute_host != host:
                cloud.admin.compute.migrate_server(filler.id, host=host)
                cloud.wait(filler, "VERIFY_RESIZE")
                cloud.confirmed(filler)
    cloud.member.compute.resize_server(server.id, "any.medium")
    cloud.failed(server)
    assert port.id in cloud.faults(server)[0].message
    assert cloud.reality(server) == before
    check_agrees(cloud, server, port)


# how a cross-cell resize fails


def service(path: str, service: str, **fields: Any) -> Break:
    return lambda cloud, _server: cloud.fail("status", path, service=service, status=403, **fields)


def at_source(method: str) -> Break:
    return lambda cloud, server: cloud.break_driver([cloud.show(server).compute_host], method, 1)


def at_target(method: str) -> Break:
    return lambda cloud, _server: cloud.break_driver(list(CELL2), method)


def lost(method: str, verdict: Verdict, times: int = 9) -> Break:
    return lambda cloud, _server: cloud.lose(method, verdict, times)


FAILURES: dict[str, Break] = {
    "bindings are refused": service("/bindings$", "network", method="POST"),
    "the target does not answer": lost("prep_snapshot_based_resize_at_dest", Verdict.LOSE_REQUEST),
    "the target's answer is lost": lost("prep_snapshot_based_resize_at_dest", Verdict.LOSE_REPLY),
    "the guest can't be powered off": at_source("power_off"),
    "the guest can't be removed": at_source("destroy"),
    "the source's answer is lost": lost("prep_snapshot_based_resize_at_source", Verdict.LOSE_REPLY),
    "activation is refused": service("/activate$", "network", method="PUT", times=1),
    "the guest can't be made": at_target("spawn"),
    "the made guest's answer is lost": lost("finish_snapshot_based_resize_at_dest", Verdict.LOSE_REPLY),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_move_that_fails_leaves_the_device_and_its_profile(cloud: Cloud, ports: Any, failure: str) -> None:
    cloud.without_patience()
    port, plain = ports(binding_profile={"trusted": "true"}), ports("physnet2", "normal")
    server = boot(cloud, port, plain)
    before = (cloud.reality(server), check_agrees(cloud, server, port), profile_of(cloud, port))
    FAILURES[failure](cloud, server)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    cloud.heal()
    cloud.settle()
    assert (cloud.reality(server), check_agrees(cloud, server, port), profile_of(cloud, port)) == before
    assert all(devices_on(cloud, host) == [] for host in CELL2)
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_the_next_alternate_is_bound_with_its_own_device(cloud: Cloud, ports: Any) -> None:
    port = ports()
    server = boot(cloud, port)
    first, second = CELL2
    held = occupied(cloud, ports, first), occupied(cloud, ports, second), occupied(cloud, ports, second)
    assert (devices_on(cloud, first), devices_on(cloud, second)) == (FUNCTIONS[:1], FUNCTIONS[:2]), held
    cloud.lose("prep_snapshot_based_resize_at_dest", Verdict.LOSE_REPLY, 1)
    target = cloud.resized(server).compute_host
    cloud.settle()
    other = first if target == second else second
    profile = profile_of(cloud, port)
    assert profile["pci_slot"] in devices_on(cloud, target)
    check_agrees(cloud, server, port)
    expected = {first: FUNCTIONS[:1], second: FUNCTIONS[:2]}[other]
    until(lambda: devices_on(cloud, other), lambda held: held == expected, "the first choice to release its claim")


@pytest.mark.embedded("stops compute services and starts them again")
def test_an_evacuated_server_gets_a_function_of_its_new_host(
    cloud: Cloud, ports: Any, dead: Callable[..., None]
) -> None:
    port = ports(binding_profile={"trusted": "true"})
    server = boot(cloud, port)
    host = cloud.show(server).compute_host
    dead(host)
    cloud.admin.compute.post(f"/servers/{server.id}/action", json={"evacuate": {}}, microversion="2.94")
    until(lambda: cloud.show(server).compute_host, lambda found: found != host, "the server to be evacuated")
    cloud.settle()
    cloud.wait(server, "ACTIVE")
    profile = profile_of(cloud, port)
    assert (profile["pci_slot"], profile["trusted"]) == (FUNCTIONS[0], "true")
    assert guest_topology(cloud, server)[1] == FUNCTIONS[:1]
    assert devices_on(cloud, cloud.show(server).compute_host) == FUNCTIONS[:1]


def test_a_port_that_was_attached_after_a_move_moves_along(cloud: Cloud, ports: Any) -> None:
    """The claim is the former move's then; what was attached goes along, what was detached does not."""
    first, second = ports(), ports("physnet2")
    server = boot(cloud, first)
    cloud.resized(server, "any.medium")
    cloud.confirmed(server)
    cloud.member.compute.create_server_interface(server.id, port_id=second.id)
    assert check_agrees(cloud, server, first, second) == [FUNCTIONS[0], OTHER_FUNCTIONS[0]]
    cloud.member.compute.delete_server_interface(first.id, server.id)
    until(lambda: cloud.admin.network.get_port(first.id).device_id, lambda id: id == "", "the port to be free")
    cloud.settle()
    cloud.resized(server, "gen2.small")
    assert check_agrees(cloud, server, second) == OTHER_FUNCTIONS[:1]
    cloud.reverted(server)
    assert check_agrees(cloud, server, second) == OTHER_FUNCTIONS[:1]
