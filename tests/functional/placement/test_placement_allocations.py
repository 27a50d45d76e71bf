"""What a server holds in the real Placement, through builds and moves."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from keystoneauth1 import token_endpoint
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session

from causeway import errors
from causeway.clients.placement import AllocationRecord, CandidatesRequest, PlacementClient, RequestGroup
from causeway.embedded.placement.local import LocalPlacement
from causeway.http.direct import DirectTransport

SMALL = {"VCPU": 1, "MEMORY_MB": 128, "DISK_GB": 1}
LARGE = {"VCPU": 2, "MEMORY_MB": 192, "DISK_GB": 2}
NOTHING = {"VCPU": 0, "MEMORY_MB": 0, "DISK_GB": 0}

MakeHost = Callable[..., str]


def new_uuid() -> str:
    return str(uuid.uuid4())


def claimed(client: PlacementClient, host: str, resources: dict[str, int] = SMALL) -> str:
    server = new_uuid()
    client.claim(server, {host: resources}, "project", "user")
    return server


def moved(client: PlacementClient, source: str, target: str) -> tuple[str, str]:
    """A server that was moved but not confirmed, and its migration."""
    server, migration = claimed(client, source), new_uuid()
    client.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=source)
    return server, migration


def truth(placement: LocalPlacement, consumer: str) -> dict[str, dict[str, int]]:
    """What the consumer holds, asked by somebody who remembers nothing."""
    return placement.client().get_allocations(consumer).allocations


def test_a_claim_is_one_call(client: PlacementClient, placement: LocalPlacement, make_host: MakeHost) -> None:
    host = make_host()
    client.reset_calls()
    server = claimed(client, host)
    assert client.calls == {"PUT /allocations/{consumer}": 1}
    assert truth(placement, server) == {host: SMALL}


def test_a_claim_is_undone_unless_it_was_found_or_has_changed(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    host, other, server = make_host(), make_host(), new_uuid()

    def claim(by: PlacementClient) -> AllocationRecord:
        return by.claim(server, {host: SMALL}, "project", "user", replace=False)

    first, again = claim(client), claim(placement.client())
    client.undo_claim(again)
    assert truth(placement, server) == {host: SMALL}
    client.undo_claim(first)
    assert truth(placement, server) == {}

    late = claim(client)
    placement.client().set_allocations(server, {other: LARGE}, "project", "user")
    client.undo_claim(late)
    assert truth(placement, server) == {other: LARGE}
    client.undo_claim(AllocationRecord(new_uuid(), {host: SMALL}, 1, "project", "user", is_written=True))


def test_a_claim_made_twice_is_made_once(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    host = make_host()
    server = claimed(client, host)
    placement.client().claim(server, {host: SMALL}, "project", "user")
    assert client.get_usages(host) == SMALL


def test_a_full_host_refuses_a_claim(client: PlacementClient, make_host: MakeHost) -> None:
    host = make_host(memory_mb=128)
    claimed(client, host)
    with pytest.raises(errors.ClaimRefused, match="no room") as refused:
        claimed(client, host)
    assert "MEMORY_MB" in refused.value.details
    assert client.get_usages(host) == SMALL


def test_a_host_that_is_gone_refuses_a_claim(client: PlacementClient) -> None:
    with pytest.raises(errors.ClaimRefused):
        claimed(client, new_uuid())


def test_of_those_that_race_for_the_last_slot_one_gets_it(placement: LocalPlacement, make_host: MakeHost) -> None:
    host = make_host(vcpus=1)
    start = threading.Barrier(4)

    def race(server: str) -> bool:
        client = placement.client()
        start.wait()
        try:
            client.claim(server, {host: SMALL}, "project", "user")
        except errors.ClaimRefused:
            return False
        return True

    servers = [new_uuid() for _ in range(4)]
    with ThreadPoolExecutor(4, thread_name_prefix="race") as pool:
        won = list(pool.map(race, servers))
    assert sum(won) == 1
    assert [bool(truth(placement, server)) for server in servers] == won


def test_deleting_allocations_is_idempotent(client: PlacementClient, make_host: MakeHost) -> None:
    host = make_host()
    server = claimed(client, host)
    client.delete_allocations(server)
    client.delete_allocations(server)
    assert client.get_usages(host) == NOTHING
    # The uuid can be used again, as unshelving does.
    client.claim(server, {host: LARGE}, "project", "user")
    assert client.get_usages(host) == LARGE


def test_a_move_swaps_and_claims_in_one_call(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    source, target = make_host(), make_host()
    server, migration = claimed(client, source), new_uuid()
    client.reset_calls()
    client.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=source)
    assert client.calls == {"POST /allocations": 1}
    assert truth(placement, server) == {target: LARGE}
    assert truth(placement, migration) == {source: SMALL}


def test_a_move_by_one_that_remembers_nothing_reads_once(placement: LocalPlacement, make_host: MakeHost) -> None:
    source, target = make_host(), make_host()
    server, migration = claimed(placement.client(), source), new_uuid()
    client = placement.client()
    client.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=source)
    assert client.calls == {"GET /allocations/{consumer}": 1, "POST /allocations": 1}
    assert truth(placement, migration) == {source: SMALL}


def test_a_move_gets_what_the_server_holds(placement: LocalPlacement, make_host: MakeHost) -> None:
    source, target = make_host(), make_host()
    server, migration = claimed(placement.client(), source), new_uuid()
    known = placement.client().get_allocations(server)
    client = placement.client()
    client.claim_for_move(server, migration, {target: LARGE}, "p", "u", source_provider=source, source=known)
    assert client.calls == {"POST /allocations": 1}
    assert truth(placement, migration) == {source: SMALL}


def test_a_move_to_a_full_host_changes_nothing(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    source, target = make_host(), make_host(vcpus=1)
    server, migration = claimed(client, source), new_uuid()
    with pytest.raises(errors.ClaimRefused):
        client.claim_for_move(server, migration, {target: LARGE}, "p", "u", source_provider=source)
    assert truth(placement, server) == {source: SMALL}
    assert truth(placement, migration) == {}
    assert client.get_usages(target) == NOTHING
    # The refusal did not spoil what is known: the next host takes it, with one call.
    other = make_host()
    client.reset_calls()
    client.claim_for_move(server, migration, {other: LARGE}, "p", "u", source_provider=source)
    assert client.calls == {"POST /allocations": 1}
    assert truth(placement, server) == {other: LARGE}


def test_a_move_that_is_repeated_holds_the_same(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    source, target = make_host(), make_host()
    server, migration = moved(client, source, target)
    for repeats in (client, placement.client()):
        repeats.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=source)
        assert truth(placement, server) == {target: LARGE}
        assert truth(placement, migration) == {source: SMALL}


def test_a_claim_that_comes_after_another_one_of_the_same_move_is_refused(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    source, target, other = make_host(), make_host(), make_host()
    server, migration = moved(client, source, target)
    for late in (client, placement.client()):
        with pytest.raises(errors.ClaimRefused, match="already"):
            late.claim_for_move(server, migration, {other: LARGE}, "project", "user", source_provider=source)
        assert truth(placement, server) == {target: LARGE}
        assert truth(placement, migration) == {source: SMALL}
    assert client.get_usages(other) == NOTHING


def test_another_writer_makes_what_is_remembered_wrong(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    source, target = make_host(), make_host()
    server, migration = claimed(client, source), new_uuid()
    placement.client().set_allocations(server, {source: LARGE}, "project", "user")
    client.reset_calls()
    client.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=source)
    assert client.calls == {"POST /allocations": 2, "GET /allocations/{consumer}": 2}
    assert truth(placement, migration) == {source: LARGE}
    assert truth(placement, server) == {target: LARGE}


def test_a_server_that_another_writer_took_elsewhere_is_not_moved_from_memory(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    """Shelved and unshelved by others: the generation is what it was, the host is not."""
    source, elsewhere, target = make_host(), make_host(), make_host()
    server, migration = claimed(client, source), new_uuid()
    others = placement.client()
    others.delete_allocations(server)
    others.claim(server, {elsewhere: SMALL}, "project", "user")
    client.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=elsewhere)
    assert truth(placement, migration) == {elsewhere: SMALL}


def test_moving_again_with_the_same_migration_keeps_the_sources(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    """One process moves, another returns them, the first one moves again: the source's must not get lost."""
    source, target = make_host(), make_host()
    server, migration = moved(client, source, target)
    placement.client().return_allocations(server, migration)
    client.get_allocations(server)
    client.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=source)
    assert truth(placement, migration) == {source: SMALL}
    assert truth(placement, server) == {target: LARGE}


def test_a_move_on_the_same_host_holds_both(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    host = make_host()
    server, migration = moved(client, host, host)
    assert client.get_usages(host) == {"VCPU": 3, "MEMORY_MB": 320, "DISK_GB": 3}
    client.release_migration(migration)
    assert truth(placement, server) == {host: LARGE}


def test_a_server_that_holds_nothing_can_still_be_moved(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    source, target = make_host(), make_host()
    server, migration = new_uuid(), new_uuid()
    client.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=source)
    assert truth(placement, server) == {target: LARGE}
    assert truth(placement, migration) == {}


@pytest.mark.parametrize("remembers", [True, False])
def test_a_failed_move_returns_its_allocations(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost, remembers: bool
) -> None:
    source, target = make_host(), make_host()
    server, migration = moved(client, source, target)
    giver = client if remembers else placement.client()
    giver.reset_calls()
    giver.return_allocations(server, migration)
    if remembers:
        assert giver.calls == {"POST /allocations": 1}
    assert truth(placement, server) == {source: SMALL}
    assert truth(placement, migration) == {}
    assert client.get_usages(target) == NOTHING
    giver.return_allocations(server, migration)
    assert truth(placement, server) == {source: SMALL}


def test_returned_allocations_fit_even_if_the_source_was_filled_up(
    client: PlacementClient, make_host: MakeHost
) -> None:
    source, target = make_host(vcpus=2), make_host()
    server, migration = moved(client, source, target)
    claimed(client, source)
    client.return_allocations(server, migration)
    assert client.get_usages(source)["VCPU"] == 2


def test_confirm_releases_what_the_migration_held(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    source, target = make_host(), make_host()
    server, migration = moved(client, source, target)
    client.reset_calls()
    client.release_migration(migration)
    assert client.calls == {"DELETE /allocations/{consumer}": 1}
    client.release_migration(migration)
    assert client.get_usages(source) == NOTHING
    assert truth(placement, server) == {target: LARGE}


def flaky_client(placement: LocalPlacement, lost: list[str], times: int, *, is_done: bool) -> PlacementClient:
    """Its connection breaks with the first writes, as long as fewer than ``times`` are ``lost``."""

    class Flaky(DirectTransport):
        def send(self, request: requests.PreparedRequest, *more: Any, **options: Any) -> requests.Response:
            if request.method != "POST" or len(lost) >= times:
                return super().send(request, *more, **options)
            lost.append(request.path_url)
            if is_done:
                super().send(request, *more, **options)
            raise requests.ConnectionError("the connection broke")

    session = requests.Session()
    session.mount("http://flaky", Flaky(placement.internal_app))
    auth = token_endpoint.Token("http://flaky", "admin")
    return PlacementClient(Adapter(Session(auth=auth, session=session), endpoint_override="http://flaky"))


@pytest.mark.parametrize("is_done", [True, False])
def test_an_answer_that_is_lost(placement: LocalPlacement, make_host: MakeHost, is_done: bool) -> None:
    """Whether the write was made or not, it is repeated once, and makes what it was to make."""
    lost: list[str] = []
    client = flaky_client(placement, lost, 1, is_done=is_done)
    source, target = make_host(), make_host()
    server, migration = claimed(client, source), new_uuid()
    client.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=source)
    assert truth(placement, server) == {target: LARGE}
    assert truth(placement, migration) == {source: SMALL}
    lost.clear()
    client.return_allocations(server, migration)
    assert truth(placement, server) == {source: SMALL}
    assert client.get_usages(target) == NOTHING


@pytest.mark.parametrize("is_done", [True, False])
def test_answers_that_are_lost_again(placement: LocalPlacement, make_host: MakeHost, is_done: bool) -> None:
    """The caller gets an error and may simply repeat the call."""
    lost: list[str] = []
    client = flaky_client(placement, lost, 2, is_done=is_done)
    source, target = make_host(), make_host()
    server, migration = claimed(client, source), new_uuid()
    with pytest.raises(errors.ServiceFailed, match="did not answer"):
        client.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=source)
    client.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=source)
    assert truth(placement, server) == {target: LARGE}
    assert truth(placement, migration) == {source: SMALL}
    lost.clear()
    with pytest.raises(errors.ServiceFailed):
        client.return_allocations(server, migration)
    client.return_allocations(server, migration)
    assert truth(placement, server) == {source: SMALL}
    assert client.get_usages(target) == NOTHING


def test_allocations_move_between_consumers_once(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    host = make_host()
    giver, taker = claimed(client, host), new_uuid()
    for _ in range(2):
        client.return_allocations(taker, giver)
        assert (truth(placement, giver), truth(placement, taker)) == ({}, {host: SMALL})


def test_many_moves_at_once_from_one_host_to_another(placement: LocalPlacement, make_host: MakeHost) -> None:
    """They all write the same two providers: what loses a race is tried again."""
    source, target = make_host(vcpus=20), make_host(vcpus=40)
    client = placement.client()
    servers = [claimed(client, source) for _ in range(12)]

    def move(server: str) -> None:
        client.claim_for_move(server, new_uuid(), {target: LARGE}, "project", "user", source_provider=source)

    with ThreadPoolExecutor(6, thread_name_prefix="move") as pool:
        list(pool.map(move, servers))
    assert client.get_usages(source)["VCPU"] == 12
    assert client.get_usages(target)["VCPU"] == 24


def test_the_usage_of_a_project_is_what_it_holds(client: PlacementClient, make_host: MakeHost) -> None:
    project = new_uuid()
    client.claim(new_uuid(), {make_host(): SMALL}, project, "user")
    assert client.get_project_usages(project) == SMALL


def test_a_refused_question_says_what_was_wrong(client: PlacementClient) -> None:
    with pytest.raises(errors.ServiceRefused) as refused:
        client.allocation_candidates(CandidatesRequest([RequestGroup(resources={"CUSTOM_NOBODY_HAS_IT": 1})]))
    assert "CUSTOM_NOBODY_HAS_IT" in refused.value.details
