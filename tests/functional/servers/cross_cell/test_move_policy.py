"""Who may leave the cell: by default nobody. Who may not gets a move inside the cell, or a clear failure."""

from __future__ import annotations

from typing import Any

import pytest
from openstack import exceptions

from causeway.store.api import journal
from tests.functional.servers.moves_cloud import Cloud


@pytest.fixture(scope="module")
def cloud_options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The default policy."""
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text("{}\n")
    return {"policy_file": str(policy)}


def other_host(host: str) -> str:
    """The other host of the same cell."""
    return host[:-1] + ("2" if host.endswith("1") else "1")


def test_a_resize_that_only_another_cell_could_serve_fails_clearly(cloud: Cloud) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    for caller in (cloud.member, cloud.admin):
        caller.compute.resize_server(server.id, "gen2.small")
        cloud.failed(server)
        assert cloud.reality(server) == before
        assert cloud.action(server, "resize").message.startswith("No valid host was found.")
        assert cloud.faults(server)[-1].message.startswith("No valid host was found.")
    assert [each.status for each in cloud.admin.compute.migrations(instance_uuid=server.id)] == ["error", "error"]


def test_a_resize_that_a_host_of_the_cell_can_serve_stays_there(cloud: Cloud) -> None:
    server = cloud.boot(flavor="any.small")
    before = cloud.show(server)
    assert cloud.resized(server, "any.medium").compute_host == other_host(before.compute_host)
    cloud.confirmed(server)


def test_a_cold_migration_stays_in_the_cell(cloud: Cloud) -> None:
    server = cloud.boot(flavor="any.small")
    before = cloud.show(server)
    cloud.admin.compute.migrate_server(server.id)
    assert cloud.wait(server, "VERIFY_RESIZE").compute_host == other_host(before.compute_host)
    assert cloud.migration(server).migration_type == "migration"
    cloud.confirmed(server)


def test_a_host_of_another_cell_can_not_be_asked_for(cloud: Cloud) -> None:
    server = cloud.boot(flavor="any.small")
    cell = cloud.show(server).compute_host[:5]
    elsewhere = "cell2-host1" if cell == "cell1" else "cell1-host1"
    before = cloud.reality(server)
    with pytest.raises(exceptions.BadRequestException, match="could not be found"):
        cloud.admin.compute.migrate_server(server.id, host=elsewhere)
    with pytest.raises(exceptions.BadRequestException, match="could not be found"):
        cloud.admin.compute.migrate_server(server.id, host="no-such-host")
    assert cloud.reality(server) == before
    assert cloud.actions(server) == ["create"]


def test_members_can_not_migrate_at_all(cloud: Cloud) -> None:
    server = cloud.boot()
    with pytest.raises(exceptions.ForbiddenException):
        cloud.member.compute.migrate_server(server.id)


def test_another_projects_private_flavor_is_as_good_as_none(cloud: Cloud) -> None:
    private = cloud.admin.compute.create_flavor(name="private", ram=192, vcpus=1, disk=1, is_public=False)
    try:
        server = cloud.boot()
        before = cloud.reality(server)
        with pytest.raises(exceptions.BadRequestException, match="could not be found"):
            cloud.member.compute.resize_server(server.id, private.id)
        assert cloud.reality(server) == before
        assert cloud.actions(server) == ["create"]
    finally:
        cloud.admin.compute.delete_flavor(private)


def test_members_of_an_anti_affinity_group_do_not_meet_by_moving(cloud: Cloud) -> None:
    group = cloud.member.compute.create_server_group(name="apart", policy="anti-affinity")
    one, other = (
        cloud.boot(name=name, flavor="gen1.small", scheduler_hints={"group": group.id}) for name in ("one", "other")
    )
    assert cloud.show(one).compute_host != cloud.show(other).compute_host
    bigger = cloud.admin.compute.create_flavor(name="gen1.medium", ram=192, vcpus=2, disk=2)
    cloud.admin.compute.create_flavor_extra_specs(bigger, {"aggregate_instance_extra_specs:gen": "1"})
    before = cloud.reality(one)
    cloud.member.compute.resize_server(one.id, bigger.id)
    cloud.failed(one)
    assert cloud.reality(one) == before
    cloud.admin.compute.delete_flavor(bigger)


def test_a_shelved_server_comes_back_in_its_cell_or_not_at_all(cloud: Cloud) -> None:
    server = cloud.boot(flavor="any.small")
    cell = cloud.show(server).compute_host[:5]
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    path, elsewhere = f"/servers/{server.id}/action", f"{'cell2' if cell == 'cell1' else 'cell1'}-host1"
    refused = cloud.admin.compute.post(path, json={"unshelve": {"host": elsewhere}}, microversion="2.91")
    assert (refused.status_code, "could not be found in the server's cell" in refused.text) == (400, True)
    services = [each for each in cloud.admin.compute.services(binary="nova-compute") if each.host.startswith(cell)]
    for service in services:
        cloud.admin.compute.disable_service(service)
    try:
        assert cloud.member.compute.post(path, json={"unshelve": None}).status_code == 202
        cloud.wait(server, "SHELVED_OFFLOADED")
        cloud.settle()
        assert cloud.action(server, "unshelve").message.startswith("No valid host was found.")
        assert [each.recipe for each in journal.of_server(cloud.parts.api_database, server.id)][-1] == "unshelve"
    finally:
        for service in services:
            cloud.admin.compute.enable_service(service)
