"""A move inside a cell: its steps and events, and its disks on their way from host to host without the image service."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from causeway.store.api import journal
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.broken_hosts import disks_of
from tests.functional.servers.moves_cloud import Cloud, until

# Of the three other hosts of a cell two are tried.
CLOUD = {"cells": 2, "hosts_per_cell": 4, "overrides": {"scheduler": {"max_attempts": 2}}}


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> AuditedCloud:
    return AuditedCloud(embedded)


def steps(cloud: Cloud, server: Any) -> list[list[str]]:
    """The steps of each of the server's moves, oldest first."""
    api = cloud.parts.api_database
    return [[step.step for step in journal.steps(api, move.id)] for move in cloud.moves(server)]


def other_hosts(cloud: Cloud, server: Any) -> list[str]:
    host = cloud.show(server).compute_host
    return [name for name in cloud.parts.computes if name[:5] == host[:5] and name != host]


@pytest.mark.parametrize("end", ["confirm", "revert"])
@pytest.mark.parametrize("operation", ["resize", "migrate"])
def test_steps_and_events_have_novas_names(cloud: Cloud, operation: str, end: str) -> None:
    server = cloud.boot(flavor="any.small")
    if operation == "resize":
        cloud.resized(server, "any.medium")
    else:
        cloud.admin.compute.migrate_server(server.id, host=other_hosts(cloud, server)[0])
        cloud.wait(server, "VERIFY_RESIZE")
    assert cloud.events(server, operation) == [
        ("conductor_migrate_server", "Success"),
        ("cold_migrate", "Success"),
        ("compute_prep_resize", "Success"),
        ("compute_resize_instance", "Success"),
        ("compute_finish_resize", "Success"),
    ]
    moving = ["SelectDestination", "ReserveTarget", "CopyWhileRunning", "HandOver", "FinishAtTarget", "MoveRecord"]
    if end == "confirm":
        cloud.confirmed(server)
        assert cloud.events(server, "confirmResize") == [("compute_confirm_resize", "Success")]
        assert steps(cloud, server) == [moving, ["CheckTarget", "ReleaseSource", "FinishConfirm"]]
    else:
        cloud.reverted(server)
        assert cloud.events(server, "revertResize") == [
            ("compute_revert_resize", "Success"),
            ("compute_finish_revert_resize", "Success"),
        ]
        back = [
            "CheckSource",
            "BeginRevert",
            "DestroyAtTarget",
            "ReturnRecord",
            "RestoreAtSource",
            "ReturnAllocations",
            "FinishRevert",
        ]
        assert steps(cloud, server) == [moving, back]


@pytest.mark.embedded("looks into computes")
def test_the_image_service_has_no_part_in_it(cloud: Cloud) -> None:
    server = cloud.boot(flavor="any.small")
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, "precious")
    for method in ("POST", "PUT"):
        cloud.fail("status", "/images", service="image", method=method, status=403)
    moved = cloud.resized(server, "any.medium")
    assert "precious" in cloud.driver(moved.compute_host).guest_read(server.id)
    (move,) = cloud.moves(server)
    sent = {step.step: (step.bytes_done, step.bytes_total) for step in journal.steps(cloud.parts.api_database, move.id)}
    size = sent["FinishAtTarget"][0]
    assert size and sent["HandOver"] == sent["FinishAtTarget"] == (size, size)
    assert move.data["offer"]["token"] == "", "nobody needs it any more"
    assert offers(cloud) == {}


def test_a_disk_whose_base_image_is_gone_travels_as_a_whole(cloud: Cloud) -> None:
    made = cloud.admin.image.create_image(name="short-lived", disk_format="raw", container_format="bare", data=b"base")
    image = cloud.admin.image.update_image(made, visibility="public")
    server = cloud.boot(flavor="any.small", image_id=image.id)
    source = cloud.show(server).compute_host
    cloud.driver(source).guest_write(server.id, "precious")
    cloud.admin.image.delete_image(image.id)
    moved = cloud.resized(server, "any.medium")
    assert "precious" in cloud.driver(moved.compute_host).guest_read(server.id)
    cloud.confirmed(server)


def offers(cloud: Cloud) -> dict[str, set[str]]:
    found = {name: compute.host.offers.servers() for name, compute in cloud.parts.computes.items()}
    return {name: servers for name, servers in found.items() if servers}


@pytest.mark.embedded("damages what computes offer")
def test_a_disk_that_was_damaged_on_its_way_rolls_the_move_back(
    cloud: AuditedCloud,
) -> None:
    server = cloud.boot(flavor="any.small")
    before = cloud.reality(server)
    cloud.without_patience()
    cloud.damage_offers()
    cloud.member.compute.resize_server(server.id, "any.medium")
    cloud.failed(server)
    assert cloud.reality(server) == before
    assert cloud.faults(server, before["shown"][3][:5])[-1].message == (
        "A disk of the server was damaged on its way. Try again."
    )
    assert ("compute_finish_resize", "Error") in cloud.events(server, "resize")
    assert offers(cloud) == {}
    assert cloud.audit().is_clean


@pytest.mark.embedded("stops the disk server of a compute")
def test_a_source_that_is_gone_rolls_the_move_back(cloud: AuditedCloud) -> None:
    """Its RPC works, its disks can't be fetched: a firewall, say."""
    cloud.without_patience()
    cloud.option("disk_transfer_patience", 0.0)
    server = cloud.boot(flavor="any.small")
    before = cloud.reality(server)
    source = cloud.parts.computes[before["shown"][3]].host.disk_server
    source.stop()
    try:
        cloud.member.compute.resize_server(server.id, "any.medium")
        cloud.failed(server)
    finally:
        source.start()
    assert cloud.reality(server) == before
    assert "could not be fetched" in cloud.faults(server, before["shown"][3][:5])[-1].message
    assert cloud.audit().is_clean


def test_what_is_offered_is_kept_no_longer_than_the_disks(cloud: AuditedCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source gets no word that they have come."""
    monkeypatch.setattr("causeway.compute.handover.disk_fetch.release", lambda _host, _offer: None)
    server = cloud.boot(flavor="any.small")
    source = cloud.show(server).compute_host
    cloud.resized(server, "any.medium")
    assert offers(cloud) == {source: {server.id}}
    assert cloud.audit().is_clean
    cloud.reverted(server)
    assert offers(cloud) == {}
    cloud.resized(server, "any.medium")
    cloud.confirmed(server)
    assert offers(cloud) == {}
    assert cloud.audit().is_clean


@pytest.mark.embedded("makes an offer for a compute")
def test_an_offer_that_nobody_needs_is_found_and_fixed(cloud: AuditedCloud) -> None:
    server = cloud.boot(flavor="any.small")
    host = cloud.show(server).compute_host
    cloud.parts.computes[host].host.offers.make("0" * 36, server.id, [], lambda _name: None)
    cloud.fixes("file.orphaned")
    assert offers(cloud) == {}


# alternates


def refuse(cloud: Cloud, server: Any, hosts: list[str], *, stashed: bool = False) -> None:
    """Hosts that hold something of the server already are not chosen."""
    for host in hosts:
        disks_of(cloud.parts.state.host(host), server.id, stashed=stashed).mkdir()


def allow(cloud: Cloud, server: Any, hosts: list[str], *, stashed: bool = False) -> None:
    for host in hosts:
        disks_of(cloud.parts.state.host(host), server.id, stashed=stashed).rmdir()


@pytest.mark.parametrize("stashed", [True, False], ids=["stashed disks", "disks"])
def test_the_next_alternate_is_taken_if_a_host_refuses(cloud: Cloud, *, stashed: bool) -> None:
    server = cloud.boot(flavor="any.small")
    source, others = cloud.show(server).compute_host, other_hosts(cloud, server)
    attempts = []
    for refusing in others:
        refuse(cloud, server, [refusing], stashed=stashed)
        moved = cloud.resized(server, "any.medium")
        allow(cloud, server, [refusing], stashed=stashed)
        taken = moved.compute_host
        assert taken != refusing
        assert list(cloud.allocations(server.id)) == [taken]
        (port,) = cloud.ports(server).values()
        assert port[1:] == (taken, cloud.bindings_between(server, source, taken))
        migration = cloud.migration(server)
        assert (migration.status, migration.dest_compute) == ("finished", taken)
        attempts.append([result for event, result in cloud.events(server, "resize") if event == "compute_prep_resize"])
        cloud.reverted(server)
    assert ["Error", "Success"] in attempts, "whom the scheduler prefers has refused once"
    assert all(attempt in (["Error", "Success"], ["Success"]) for attempt in attempts)


def test_when_no_alternate_is_left_the_server_is_restored(cloud: AuditedCloud) -> None:
    """After as many attempts as ``max_attempts`` allows."""
    server = cloud.boot(flavor="any.small")
    others, before = other_hosts(cloud, server), cloud.reality(server)
    refuse(cloud, server, others)
    cloud.member.compute.resize_server(server.id, "any.medium")
    cloud.failed(server)
    allow(cloud, server, others)
    assert cloud.reality(server) == before
    prepared = [event for event in cloud.events(server, "resize") if event[0] == "compute_prep_resize"]
    assert prepared == [("compute_prep_resize", "Error")] * 2
    assert cloud.audit().is_clean


def test_a_host_that_was_asked_for_is_the_only_one_that_is_tried(cloud: Cloud) -> None:
    server = cloud.boot(flavor="any.small")
    wanted, before = other_hosts(cloud, server)[0], cloud.reality(server)
    refuse(cloud, server, [wanted])
    cloud.admin.compute.migrate_server(server.id, host=wanted)
    cloud.failed(server)
    allow(cloud, server, [wanted])
    assert cloud.reality(server) == before
    assert cloud.migration(server).dest_compute == wanted


def test_a_host_that_does_not_fit_is_no_valid_host(cloud: Cloud) -> None:
    server = cloud.boot(flavor="gen1.small")
    before = cloud.reality(server)
    cloud.admin.compute.migrate_server(server.id, host="cell2-host1")
    cloud.failed(server)
    assert cloud.reality(server) == before
    assert cloud.faults(server)[-1].message.startswith("No valid host was found.")
    assert cloud.action(server, "migrate").message.startswith("No valid host was found.")


def test_deleting_a_server_stops_its_disk_on_the_way(cloud: AuditedCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causeway.compute.host.transfer_progress.REPORT_INTERVAL", 0.0)
    server = cloud.boot(flavor="any.small")
    fetched = cloud.parts.computes[other_hosts(cloud, server)[0]].host.conductor.__class__
    report = fetched.report_progress

    def deleted_meanwhile(*args: Any, **kwargs: Any) -> Any:
        if kwargs["token"].step == "FinishAtTarget":
            cloud.member.compute.delete_server(server.id)
        return report(*args, **kwargs)

    monkeypatch.setattr(fetched, "report_progress", deleted_meanwhile)
    cloud.member.compute.resize_server(server.id, "any.medium")
    until(
        lambda: [found.id for found in cloud.admin.compute.servers(details=False)],
        lambda left: server.id not in left,
        "the server to go",
    )
    cloud.settle()
    assert cloud.hosts_of(server) == {}
    assert offers(cloud) == {}
    assert cloud.audit().is_clean
