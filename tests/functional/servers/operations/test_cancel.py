"""Moves that are watched and cancelled while they run."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from causeway.clients import image
from causeway.compute.host import transfer_progress
from causeway.rpc.transport import Outgoing, Verdict
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.openstack_client import listed, openstack


def under_way(cloud: Cloud, server: Any) -> list[dict[str, Any]]:
    answer = cloud.admin.compute.get(f"/servers/{server.id}/migrations", microversion="2.80")
    found: list[dict[str, Any]] = answer.json()["migrations"]
    return found


def cancel(cloud: Cloud, server: Any, migration: Any) -> Any:
    return cloud.admin.compute.delete(f"/servers/{server.id}/migrations/{migration}", microversion="2.80")


def held_at_the_upload(cloud: Cloud) -> Any:
    """A server whose move waits for the image service until `heal` lets it continue."""
    server = cloud.boot()
    cloud.without_rounds()
    cloud.fail("delay", "/file$", method="PUT", service="image", seconds=60, times=1)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    until(
        lambda: under_way(cloud, server),
        lambda found: bool(found) and found[0]["causeway:step"] == "HandOver",
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
    assert listed["causeway:step"] == "HandOver"
    for path in ("/os-migrations", f"/servers/{server.id}/migrations"):
        before = cloud.admin.compute.get(path, microversion="2.79").json()["migrations"]
        assert not [key for found in before for key in found if key.startswith("causeway:")], (
            "older clients know no such keys"
        )
    one = cloud.admin.compute.get(f"/servers/{server.id}/migrations/{shown['id']}", microversion="2.80")
    assert one.json()["migration"]["uuid"] == shown["uuid"]
    cloud.heal()
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    assert under_way(cloud, server) == []


def test_a_move_that_is_cancelled_restores_the_server(cloud: Cloud) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    cloud.without_rounds()
    cloud.fail("delay", "/file$", method="PUT", service="image", seconds=60, times=1)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    (moving,) = until(
        lambda: under_way(cloud, server),
        lambda found: bool(found) and found[0]["causeway:step"] == "HandOver",
        "the upload to begin",
    )
    assert cancel(cloud, server, moving["id"]).status_code == 202
    cloud.heal()
    cloud.settle()
    assert cloud.reality(server) == before
    assert cloud.migration(server).status == "cancelled"
    assert cloud.faults(server) == []


class Transfer:
    """Holds up a transfer at its first report of progress in a step, and counts its reports."""

    def __init__(self, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        self.reached, self.opened, self.reports = threading.Event(), threading.Event(), 0
        monkeypatch.setattr(transfer_progress, "REPORT_INTERVAL", 0.0)
        monkeypatch.setattr(image, "UPLOAD_CHUNK_BYTES", 16)
        monkeypatch.setattr(image, "DOWNLOAD_CHUNK_BYTES", 16)

        def on_send(message: Outgoing) -> Verdict:
            if message.method == "report_progress" and message.arguments["token"].step == step:
                self.reports += 1
                self.reached.set()
                assert self.opened.wait(30)
            return Verdict.DELIVER

        cloud.parts.around.transports.on_send = on_send


@pytest.mark.parametrize(
    ("step", "is_direct"), [("HandOver", False), ("FinishAtTarget", False), ("FinishAtTarget", True)]
)
def test_a_transfer_under_way_stops_when_its_move_is_cancelled(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, step: str, is_direct: bool
) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    if not is_direct:
        cloud.without_rounds()
    transfer = Transfer(cloud, monkeypatch, step)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    assert transfer.reached.wait(30)
    (moving,) = under_way(cloud, server)
    assert cancel(cloud, server, moving["id"]).status_code == 202
    transfer.opened.set()
    cloud.settle()
    assert transfer.reports == 1
    assert cloud.reality(server) == before
    assert cloud.migration(server).status == "cancelled"


def test_a_transfer_under_way_stops_when_its_server_is_deleted(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()
    cloud.without_rounds()
    transfer = Transfer(cloud, monkeypatch, "HandOver")
    cloud.member.compute.resize_server(server.id, "gen2.small")
    assert transfer.reached.wait(30)
    cloud.member.compute.delete_server(server.id)
    transfer.opened.set()
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    cloud.settle()
    assert transfer.reports == 1
    assert cloud.temporary_images() == []
    assert cloud.hosts_of(server) == {}


def test_a_move_behind_its_pivot_is_not_cancelled(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    answer = cancel(cloud, server, cloud.migration(server).id)
    assert answer.status_code == 409
    assert "revert" in answer.json()["conflictingRequest"]["message"]
    assert cancel(cloud, server, 4711).status_code == 404


@pytest.mark.parametrize("version", ["2.1", "2.56", "2.96"])
def test_the_openstack_client_takes_the_microversion_it_is_given(cloud: Cloud, version: str) -> None:
    """clouds.yaml names none: a default there is taken for the only one that the client may use."""
    server = cloud.boot()
    found = listed(cloud, "--os-compute-api-version", version, "server", "list", "--all-projects", anew=True)
    assert server.id in [each["ID"] for each in found]


def test_the_openstack_client_lists_shows_and_cancels_moves(cloud: Cloud) -> None:
    server = held_at_the_upload(cloud)
    version = ("--os-compute-api-version", "2.96")
    (found,) = listed(cloud, *version, "server", "migration", "list", "--server", server.id)
    assert (found["Status"], found["Type"], found["Server UUID"]) == ("migrating", "resize", server.id)
    # By its number the client (10.5) asks for the server of that number.
    shown = listed(cloud, *version, "server", "migration", "show", server.id, found["UUID"])
    assert (shown["Status"], shown["Server UUID"]) == ("migrating", server.id)
    openstack(cloud, *version, "server", "migration", "abort", server.id, str(found["Id"]))
    cloud.heal()
    cloud.settle()
    assert cloud.migration(server).status == "cancelled"
