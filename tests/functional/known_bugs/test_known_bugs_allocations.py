"""Known bugs, section 3: what servers and migrations hold in Placement. See docs/known-bugs.md."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.errors import GuestFailed
from causeway.model.sagas import SagaState
from causeway.store.api import journal
from tests.functional.servers.moves_cloud import until

from .known_bugs_cloud import KnownBugsCloud

SMALL = {"VCPU": 1, "MEMORY_MB": 128, "DISK_GB": 1}
MEDIUM = {"VCPU": 2, "MEMORY_MB": 192, "DISK_GB": 2}


def another_writer(cloud: KnownBugsCloud, server: Any) -> None:
    """Somebody else writes what a server holds, so that whoever remembers its generation is wrong."""
    client = cloud.other_placement
    held = client.get_allocations(server.id)
    client.set_allocations(server.id, held.allocations, held.project_id, held.user_id, known=held)


@pytest.mark.parametrize("outcome", ["fails", "is reverted", "is confirmed"])
def test_a_server_without_allocations_can_be_moved(cloud: KnownBugsCloud, outcome: str) -> None:
    """1741307: nobody knows why it holds nothing; a move works, and leaves nothing at the end that it has left."""
    server = cloud.boot()
    home = cloud.show(server).compute_host
    cloud.other_placement.delete_allocations(server.id)
    if outcome == "fails":
        cloud.without_rounds()
        cloud.fail("status", "/file$", service="image", method="PUT", status=413)
        cloud.member.compute.resize_server(server.id, "gen2.small")
        cloud.failed(server)
    else:
        cloud.resized(server)
        (cloud.reverted if outcome == "is reverted" else cloud.confirmed)(server)
    here = cloud.show(server).compute_host
    assert set(cloud.allocations(server.id)) <= {here}
    assert (here == home) is (outcome != "is confirmed")
    assert cloud.allocations(cloud.migration(server).uuid) == {}


def test_a_revert_that_meets_another_writer_returns_the_allocations_all_the_same(cloud: KnownBugsCloud) -> None:
    """Reading: a conflict that is only logged leaves the server with the target's resources."""
    server = cloud.boot()
    home = cloud.show(server).compute_host
    cloud.resized(server)
    met = cloud.at("restore_at_source", lambda: another_writer(cloud, server))
    cloud.reverted(server)
    assert met.is_set()
    assert cloud.allocations(server.id) == {home: SMALL}
    assert cloud.allocations(cloud.migration(server).uuid) == {}


def test_a_delete_that_meets_another_writer_frees_everything_all_the_same(cloud: KnownBugsCloud) -> None:
    """1836754, 1859496: a delete asks for no generation."""
    server = cloud.boot()
    met = cloud.at("remove_guest", lambda: another_writer(cloud, server))
    cloud.member.compute.delete_server(server.id)
    cloud.gone(server)
    assert met.is_set()
    until(lambda: cloud.allocations(server.id), lambda held: held == {}, "the allocations to go")


@pytest.mark.expects_errors("is stuck in do of ReleaseSource")
def test_a_confirm_that_fails_at_the_source_is_tried_until_it_works(
    cloud: KnownBugsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1821594: it is not stuck for ever, says meanwhile what is wrong, and what the migration held is free at the end."""
    server = cloud.boot()
    home = cloud.show(server).compute_host
    there = cloud.resized(server).compute_host
    with monkeypatch.context() as patch:

        def breaks(_uuid: str) -> None:
            raise GuestFailed("The disk is on fire.")

        patch.setattr(cloud.driver(home), "delete_stashed_disks", breaks)
        cloud.member.compute.confirm_server_resize(server.id)
        stuck = until(
            lambda: journal.of_server(cloud.parts.api_database, server.id)[-1],
            lambda move: move.state is SagaState.STUCK,
            "the confirm to be stuck",
        )
        assert "The disk is on fire." in str(stuck.error)
        assert cloud.allocations(cloud.migration(server).uuid) == {home: SMALL}
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.migration(server).status == "confirmed"
    assert (cloud.allocations(server.id), cloud.allocations(cloud.migration(server).uuid)) == ({there: MEDIUM}, {})


def test_the_services_of_both_ends_stay_while_a_resize_waits(cloud: KnownBugsCloud) -> None:
    """1852610: without them it could be neither confirmed nor reverted."""
    server = cloud.boot()
    ends = [cloud.show(server).compute_host, cloud.resized(server).compute_host]
    for host in ends:
        answer = cloud.admin.compute.delete(f"/os-services/{cloud.service(host).id}", microversion="2.53")
        assert answer.status_code == 409, answer.text
    cloud.reverted(server)


@pytest.mark.parametrize("what", ["build", "resize"])
def test_a_server_that_is_deleted_while_it_is_scheduled_holds_nothing(cloud: KnownBugsCloud, what: str) -> None:
    """1848343, 1859496 (the other stages: tests/functional/servers/build_and_delete/test_delete.py)."""
    given = {"image_id": cloud.image_id, "networks": "none", "flavor_id": "gen1.small"}
    server = None if what == "build" else cloud.boot()
    with cloud.held("select_destinations") as reached:
        if server is None:
            server = cloud.member.compute.create_server(name="short-lived", **given)
        else:
            cloud.member.compute.resize_server(server.id, "gen2.small")
        assert reached.wait(20)
        cloud.member.compute.delete_server(server.id)
    cloud.gone(server)
    until(lambda: (cloud.allocations(server.id), cloud.hosts_of(server)), lambda left: left == ({}, {}), "all to go")
    assert all(cloud.allocations(each.uuid) == {} for each in cloud.admin.compute.migrations(instance_uuid=server.id))
