"""Placement was killed between two of its transactions: there is a consumer that it does not show."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from placement.handlers import util as handlers

from causeway import errors
from causeway.clients.placement import PlacementClient
from causeway.clients.placement.types import Candidates
from causeway.embedded.placement.local import LocalPlacement
from tests.functional.half_written import half_delete, half_move, half_write

SMALL = {"VCPU": 1, "MEMORY_MB": 128, "DISK_GB": 1}
LARGE = {"VCPU": 2, "MEMORY_MB": 192, "DISK_GB": 2}

MakeHost = Callable[..., str]
Hide = Callable[[PlacementClient, str, str], None]


def new_uuid() -> str:
    return str(uuid.uuid4())


def as_written(client: PlacementClient, consumer: str, host: str) -> None:
    half_write(client, consumer, {host: SMALL})


def as_deleted(client: PlacementClient, consumer: str, host: str) -> None:
    """Generations count on until the end."""
    for resources in (SMALL, LARGE, SMALL, LARGE):
        client.set_allocations(consumer, {host: resources}, "project", "user")
    half_delete(client, consumer)


@pytest.fixture(autouse=True)
def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causeway.clients.placement.hidden.SETTLED_AFTER", 0.0)


@pytest.fixture(params=[as_written, as_deleted])
def hide(request: pytest.FixtureRequest) -> Hide:
    """Makes a consumer without allocations."""
    made: Hide = request.param
    return made


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("replace", [True, False])
def test_a_claim_for_it_succeeds(
    client: PlacementClient,
    placement: LocalPlacement,
    make_host: MakeHost,
    hide: Hide,
    remembers: bool,
    replace: bool,
) -> None:
    host, server = make_host(), new_uuid()
    hide(client, server, host)
    claiming = client if remembers else placement.client()
    claiming.claim(server, {host: LARGE}, "project", "user", replace=replace)
    assert placement.client().get_allocations(server).allocations == {host: LARGE}
    # What follows finds it as any other.
    client.delete_allocations(server)
    claiming.claim(server, {host: SMALL}, "project", "user", replace=replace)
    assert client.get_usages(host) == SMALL


def test_a_changed_allocation_succeeds(client: PlacementClient, make_host: MakeHost, hide: Hide) -> None:
    host, server = make_host(), new_uuid()
    hide(client, server, host)
    client.change_allocations(server, lambda _held: {host: LARGE}, "project", "user")
    assert client.get_usages(host) == LARGE


def test_a_move_whose_migration_is_one_succeeds(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost
) -> None:
    source, target = make_host(), make_host()
    server, migration = new_uuid(), new_uuid()
    client.claim(server, {source: SMALL}, "project", "user")
    half_move(client, server, migration, {target: LARGE}, source)
    for again in (client, placement.client()):
        again.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=source)
        assert client.get_allocations(server).allocations == {target: LARGE}
        assert client.get_allocations(migration).allocations == {source: SMALL}


def test_a_move_of_a_server_that_is_one_succeeds(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost, hide: Hide
) -> None:
    source, target, server, migration = make_host(), make_host(), new_uuid(), new_uuid()
    hide(client, server, source)
    client.claim_for_move(server, migration, {target: LARGE}, "project", "user", source_provider=source)
    assert placement.client().get_allocations(server).allocations == {target: LARGE}


@pytest.mark.parametrize("remembers", [True, False])
def test_allocations_return_to_a_server_that_is_one(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost, hide: Hide, remembers: bool
) -> None:
    source, server, migration = make_host(), new_uuid(), new_uuid()
    client.claim(migration, {source: SMALL}, "project", "user")
    hide(client, server, source)
    returning = client if remembers else placement.client()
    returning.return_allocations(server, migration)
    assert client.get_allocations(server).allocations == {source: SMALL}
    assert client.get_allocations(migration).is_empty


def test_deleting_what_it_holds_succeeds(client: PlacementClient, make_host: MakeHost, hide: Hide) -> None:
    host, server = make_host(), new_uuid()
    hide(client, server, host)
    client.delete_allocations(server)
    assert client.get_usages(host)["VCPU"] == 0


@pytest.mark.parametrize("remembers", [True, False])
def test_a_delete_that_is_repeated_leaves_no_consumer(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost, hide: Hide, remembers: bool
) -> None:
    host, server = make_host(), new_uuid()
    hide(client, server, host)
    (client if remembers else placement.client()).delete_allocations(server)
    assert not placement.client().is_hidden(server, "project", "user")
    assert client.get_usages(host)["VCPU"] == 0


def test_a_delete_leaves_a_consumer_that_it_has_no_room_to_write_for(
    client: PlacementClient, make_host: MakeHost, hide: Hide, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, server = make_host(), new_uuid()
    hide(client, server, host)
    monkeypatch.setattr(client, "allocation_candidates", lambda _request: Candidates([], {}))
    client.delete_allocations(server)
    assert client.is_hidden(server, "project", "user")


def test_a_full_host_is_still_full(client: PlacementClient, make_host: MakeHost, hide: Hide) -> None:
    host, server = make_host(vcpus=2), new_uuid()
    hide(client, server, host)
    client.claim(new_uuid(), {host: LARGE}, "project", "user")
    for _ in range(2):
        with pytest.raises(errors.ClaimRefused, match="no room"):
            client.claim(server, {host: SMALL}, "project", "user")


def test_whoever_is_about_to_write_it_is_not_overtaken(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer without allocations is also what a write looks like that is under way."""
    host, server = make_host(), new_uuid()
    half_write(client, server, {host: SMALL})
    waited: list[float] = []

    def meanwhile(_event: object, seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 1:
            placement.client().claim(server, {host: LARGE}, "project", "user")

    monkeypatch.setattr("causeway.clients.placement.hidden.Event.wait", meanwhile)
    with pytest.raises(errors.ClaimRefused, match="holds resources already"):
        placement.client().claim(server, {host: SMALL}, "project", "user", replace=False)
    assert client.get_usages(host) == LARGE


def test_a_conflict_that_nothing_changes_is_permanent(
    client: PlacementClient, make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Placement does not say which generation it would take: nobody waits for that to pass."""

    def refuse(*_arguments: object) -> None:
        raise handlers.webob.exc.HTTPConflict("consumer generation conflict", comment="placement.concurrent_update")

    host, server = make_host(), new_uuid()
    monkeypatch.setattr(handlers, "ensure_consumer", refuse)
    with pytest.raises(errors.ServiceRefused, match=f"consumer {server}") as refused:
        client.claim(server, {host: SMALL}, "project", "user")
    assert not refused.value.passing
    assert client.calls["PUT /allocations/{consumer}"] <= 3


def test_a_half_written_consumer_can_be_found_and_deleted(
    client: PlacementClient, placement: LocalPlacement, make_host: MakeHost, hide: Hide
) -> None:
    host, server, other, unknown = make_host(), new_uuid(), new_uuid(), new_uuid()
    hide(client, server, host)
    client.claim(other, {host: SMALL}, "project", "user")
    asking = placement.client()
    assert [asking.is_hidden(each, "project", "user") for each in (server, other, unknown)] == [True, False, False]
    asking.delete_hidden(server, "project", "user")
    assert not asking.is_hidden(server, "project", "user")
    assert client.get_usages(host) == SMALL
