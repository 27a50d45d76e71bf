"""Moves that are watched and cancelled while they run."""

from __future__ import annotations

from typing import Any

from moves_cloud import Cloud, until


def under_way(cloud: Cloud, server: Any) -> list[dict[str, Any]]:
    answer = cloud.admin.compute.get(f"/servers/{server.id}/migrations", microversion="2.80")
    found: list[dict[str, Any]] = answer.json()["migrations"]
    return found


def cancel(cloud: Cloud, server: Any, migration: Any) -> Any:
    return cloud.admin.compute.delete(f"/servers/{server.id}/migrations/{migration}", microversion="2.80")


def held_at_the_upload(cloud: Cloud) -> Any:
    """A server whose move waits for the image service until `heal` lets it go on."""
    server = cloud.boot()
    cloud.fail("delay", "/file$", method="PUT", service="image", seconds=60, times=1)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    until(
        lambda: under_way(cloud, server),
        lambda found: bool(found) and found[0]["causeway:step"] == "PrepResizeAtSource",
        "the upload to begin",
    )
    return server


def test_a_move_shows_its_step_while_it_runs(cloud: Cloud) -> None:
    server = held_at_the_upload(cloud)
    (shown,) = under_way(cloud, server)
    assert (shown["status"], shown["server_uuid"]) == ("migrating", server.id)
    (listed,) = [
        found
        for found in cloud.admin.compute.get("/os-migrations", microversion="2.80").json()["migrations"]
        if found["instance_uuid"] == server.id
    ]
    assert listed["causeway:step"] == "PrepResizeAtSource"
    one = cloud.admin.compute.get(f"/servers/{server.id}/migrations/{shown['id']}", microversion="2.80")
    assert one.json()["migration"]["uuid"] == shown["uuid"]
    cloud.heal()
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    assert under_way(cloud, server) == []


def test_a_move_that_is_cancelled_gives_the_server_back(cloud: Cloud) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    cloud.fail("delay", "/file$", method="PUT", service="image", seconds=60, times=1)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    (moving,) = until(
        lambda: under_way(cloud, server),
        lambda found: bool(found) and found[0]["causeway:step"] == "PrepResizeAtSource",
        "the upload to begin",
    )
    assert cancel(cloud, server, moving["id"]).status_code == 202
    cloud.heal()
    cloud.settle()
    assert cloud.reality(server) == before
    assert cloud.migration(server).status == "cancelled"
    assert cloud.faults(server) == []


def test_a_move_behind_its_pivot_is_not_cancelled(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    answer = cancel(cloud, server, cloud.migration(server).id)
    assert answer.status_code == 409
    assert "revert" in answer.json()["conflictingRequest"]["message"]
    assert cancel(cloud, server, 4711).status_code == 404
