"""Placement against the records."""

from __future__ import annotations

import uuid as uuids

import pytest

from causeway.clients.placement import PlacementClient
from tests.functional.half_written import half_delete, half_write
from tests.functional.servers.audited_cloud import AuditedCloud


@pytest.fixture
def placement(cloud: AuditedCloud) -> PlacementClient:
    client: PlacementClient = cloud.parts.around.placement
    return client


def node(cloud: AuditedCloud, host: str) -> str:
    """The uuid of a host's provider."""
    return cloud.parts.around.placement.list_providers(name=host)[0].uuid


def test_a_server_without_its_allocation_gets_it_back(cloud: AuditedCloud, placement: PlacementClient) -> None:
    server = cloud.boot()
    before = cloud.allocations(server.id)
    placement.delete_allocations(server.id)

    found = cloud.only("allocation.missing")
    assert (found.server, found.severity) == (server.id, "error")
    cloud.fixes("allocation.missing")
    assert cloud.allocations(server.id) == before


def test_a_server_holds_exactly_what_its_flavor_says(cloud: AuditedCloud, placement: PlacementClient) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    held = cloud.allocations(server.id)[host]
    placement.set_allocations(server.id, {node(cloud, host): held | {"VCPU": 7}}, server.project_id, "u")

    cloud.only("allocation.wrong_amount")
    cloud.fixes("allocation.wrong_amount")
    assert cloud.allocations(server.id) == {host: held}


def test_a_server_that_holds_resources_of_another_host_is_repaired(
    cloud: AuditedCloud, placement: PlacementClient
) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    held = cloud.allocations(server.id)[host]
    both = {node(cloud, host): held, node(cloud, "cell2-host1"): held}
    placement.set_allocations(server.id, both, server.project_id, "u")

    assert "cell2-host1" in cloud.only("allocation.wrong_host").message
    cloud.fixes("allocation.wrong_host")
    assert cloud.allocations(server.id) == {host: held}


def test_what_an_ended_migration_still_holds_is_freed(cloud: AuditedCloud, placement: PlacementClient) -> None:
    server = cloud.boot()
    cloud.confirmed(cloud.resized(server))
    migration = cloud.migration(server)
    leaked = {node(cloud, "cell1-host1"): {"VCPU": 1}}
    placement.set_allocations(migration.uuid, leaked, server.project_id, "u")

    found = cloud.only("allocation.orphaned")
    assert (found.resource, found.server) == (migration.uuid, server.id)
    cloud.fixes("allocation.orphaned")
    assert cloud.allocations(migration.uuid) == {}


def test_a_migrations_allocation_that_was_not_returned_is(cloud: AuditedCloud, placement: PlacementClient) -> None:
    """The migration holds what the server should: as if a revert had ended without returning it."""
    server = cloud.boot()
    host = cloud.show(server).compute_host
    cloud.reverted(cloud.resized(server))
    migration, held = cloud.migration(server), cloud.allocations(server.id)[host]
    placement.set_allocations(migration.uuid, {node(cloud, host): held}, server.project_id, "u")
    placement.set_allocations(server.id, {node(cloud, "cell2-host1"): held}, server.project_id, "u")

    kinds = {found.kind for found in cloud.audit().disagreements}
    assert kinds == {"allocation.orphaned", "allocation.wrong_host"}
    cloud.fixes("allocation.orphaned")
    assert cloud.allocations(server.id) == {host: held}
    assert cloud.allocations(migration.uuid) == {}


def test_while_a_resize_waits_its_migration_must_hold_the_source(
    cloud: AuditedCloud, placement: PlacementClient
) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    held = cloud.allocations(server.id)[host]
    cloud.resized(server)
    migration = cloud.migration(server)
    placement.delete_allocations(migration.uuid)

    assert cloud.only("allocation.missing").resource == migration.uuid
    cloud.fixes("allocation.missing")
    assert cloud.allocations(migration.uuid) == {host: held}


def test_what_a_deleted_server_still_holds_is_freed(cloud: AuditedCloud, placement: PlacementClient) -> None:
    server = cloud.boot()
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    placement.set_allocations(server.id, {node(cloud, "cell1-host1"): {"VCPU": 1}}, server.project_id, "u")

    cloud.only("allocation.orphaned")
    cloud.fixes("allocation.orphaned")


def test_what_a_server_that_never_had_a_cell_still_holds_is_freed(
    cloud: AuditedCloud, placement: PlacementClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the journal knows it."""
    with monkeypatch.context() as patched:
        patched.setattr("causeway.api.servers.creating.create.notify_conductor", lambda *_: None)
        server = cloud.member.compute.create_server(
            name="server", flavor_id="any.small", image_id=cloud.image_id, networks="none"
        )
        cloud.member.compute.delete_server(server.id)
    cloud.settle()
    placement.set_allocations(server.id, {node(cloud, "cell1-host1"): {"VCPU": 1}}, "p", "u")

    assert cloud.only("allocation.orphaned").resource == server.id
    cloud.fixes("allocation.orphaned")


def test_consumers_that_nobody_knows_are_left_to_their_owners(cloud: AuditedCloud, placement: PlacementClient) -> None:
    stranger = str(uuids.uuid4())
    placement.set_allocations(stranger, {node(cloud, "cell1-host1"): {"VCPU": 1}}, "p", "u")

    cloud.only_reports("allocation.unknown_consumer")
    placement.delete_allocations(stranger)


def test_a_shelved_server_that_placement_does_not_show_is_deleted_there(
    cloud: AuditedCloud, placement: PlacementClient
) -> None:
    server = cloud.boot()
    cloud.option("shelved_offload_time", 0)
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()
    assert cloud.audit().is_clean
    half_write(placement, server.id, {node(cloud, "cell1-host1"): {"VCPU": 1}})

    assert cloud.only("allocation.half_written").server == server.id
    cloud.fixes("allocation.half_written")
    assert cloud.allocations(server.id) == {}


def test_a_server_whose_allocations_are_half_deleted_gets_them_back(
    cloud: AuditedCloud, placement: PlacementClient
) -> None:
    server = cloud.boot()
    before = cloud.allocations(server.id)
    half_delete(placement, server.id)

    cloud.only("allocation.missing")
    cloud.fixes("allocation.missing")
    assert cloud.allocations(server.id) == before
