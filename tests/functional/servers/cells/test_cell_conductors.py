"""Cells with conductors of their own, which know their cell's queue and database and nothing of the cloud."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.compute.host import transfer_progress
from causeway.conductor.cell_service import CellConductorService
from causeway.conductor.cells import cloud_records
from causeway.conductor.cells.cell import CellEndpoint
from causeway.context import admin_context
from causeway.roles.conductor import make_conductor
from causeway.rpc import cell_conductor, super_conductor
from causeway.rpc.cell_conductor import CellConductorClient
from causeway.rpc.transport import Outgoing, Transport, Verdict
from causeway.store.api import cells, operations, wanted_operations
from causeway.store.cell import hosts
from causeway.store.database import Database
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD: dict[str, Any] = {
    # The cloud is notified again of a host after `service_down_time`.
    "overrides": {"DEFAULT": {"report_interval": 1, "service_down_time": 6}, "conductor": {"role": "super"}}
}


def test_a_server_moves_to_the_other_cell(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    assert cloud.confirmed(server).compute_host.startswith("cell2-")
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_hosts_are_mapped_by_a_super_conductor(cloud: Cloud) -> None:
    known = until(lambda: cells.hosts(cloud.parts.api_database), lambda found: len(found) == 4, "all to be mapped")
    names = {cell.uuid: cell.name for cell in cloud.parts.cells.mappings()}
    assert {names[cell] for host, cell in known.items() if host.startswith("cell1-")} == {"cell1"}
    assert {names[cell] for host, cell in known.items() if host.startswith("cell2-")} == {"cell2"}


@pytest.mark.embedded("loses casts of this process")
def test_a_host_whose_mapping_was_lost_on_the_way_is_mapped_with_a_later_report(cloud: Cloud) -> None:
    lost = threading.Event()

    def on_send(message: Outgoing) -> Verdict:
        if message.method == "map_host" and message.arguments["host"] == "cell1-host1" and not lost.is_set():
            lost.set()
            return Verdict.LOSE_REQUEST
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    assert lost.wait(30)
    cells.unmap_host(cloud.parts.api_database, "cell1-host1")
    until(lambda: cells.hosts(cloud.parts.api_database), lambda found: "cell1-host1" in found, "it to be mapped")


def test_hosts_that_came_while_no_super_conductor_listened_are_mapped_when_one_does(cloud: Cloud) -> None:
    embedded = cloud.embedded
    (cell,) = (each for each in embedded.cells.mappings() if each.name == "cell1")
    cells.unmap_host(embedded.api_database, "cell1-host1")
    cloud_records.map_hosts(embedded.conductor._services, cell.uuid)
    assert cells.cell_of_host(embedded.api_database, "cell1-host1") == cell.uuid


def test_progress_is_in_the_journal_and_a_cancelled_transfer_stops(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the compute hears comes from the super conductor, through its cell's conductor."""
    monkeypatch.setattr(transfer_progress, "REPORT_INTERVAL", 0.0)
    handed_up, noted, cancelled = list[Any](), threading.Event(), threading.Event()

    def on_send(message: Outgoing) -> Verdict:
        if message.method == "report_progress" and message.topic == cell_conductor.TOPIC and handed_up:
            noted.set()
            assert cancelled.wait(30)
        if message.method == "report_progress" and message.topic == super_conductor.TOPIC:
            handed_up.append(message.arguments["bytes_done"])
        return Verdict.DELIVER

    monkeypatch.setattr("causeway.clients.image.UPLOAD_CHUNK_BYTES", 16)
    cloud.parts.around.transports.on_send = on_send
    server = cloud.boot()
    before = cloud.reality(server)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    assert noted.wait(30)
    (move,) = operations.search(cloud.parts.api_database)
    (step,) = (each for each in move.steps if each.ended_at is None)
    assert step.bytes_done == handed_up[-1]
    wanted_operations.request_cancel(cloud.parts.api_database, move.migration_uuid)
    cancelled.set()
    cloud.settle()
    assert cloud.migration(server).status == "cancelled"
    assert cloud.reality(server) == before


def test_conductors_that_do_both_jobs_share_the_reports_with_those_of_cells(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while an operator changes over from the one to the other."""
    embedded, takers, to_map = cloud.embedded, set[bool](), CellEndpoint._map

    def noted(endpoint: CellEndpoint, *of_report: Any) -> None:
        takers.add(endpoint._remind is None)
        to_map(endpoint, *of_report)

    monkeypatch.setattr(CellEndpoint, "_map", noted)
    both = make_conductor(embedded.around, embedded.api_database, embedded.cells, "both")
    both.start()
    until(lambda: len(takers), lambda kinds: kinds == 2, "conductors of both kinds to take reports")
    server = cloud.boot()
    cloud.resized(server)
    assert cloud.confirmed(server).compute_host.startswith("cell2-")
    both.stop()


def conductor_of_cell1(cloud: Cloud, host: str) -> tuple[CellConductorService, Database, Transport]:
    """One more, started, with a queue that nobody else listens to."""
    embedded = cloud.parts
    (cell,) = (each for each in embedded.cells.mappings() if each.name == "cell1")
    database = embedded.cells.database(cell.uuid)
    queue = embedded.around.transports.get(f"{cell.transport_url}-of-{host}")
    conductor = CellConductorService(host, embedded.conf, database, queue, embedded.around.notifier(host))
    conductor.start()
    return conductor, database, queue


@pytest.mark.embedded("starts cell conductors in its own process")
def test_a_conductor_of_a_cell_shows_its_life_there_and_ends_in_order(cloud: Cloud) -> None:
    conductor, database, _queue = conductor_of_cell1(cloud, "second")
    (service,) = hosts.list_services(database, host="second")
    assert (service.binary, service.topic) == ("nova-conductor", cell_conductor.TOPIC)
    (shown,) = (each for each in cloud.admin.compute.services() if each.host == "second")
    assert (shown.binary, shown.state, shown.availability_zone) == ("nova-conductor", "up", "internal")
    until(
        lambda: hosts.list_services(database, host="second")[0].last_seen_up,
        lambda seen: seen != service.last_seen_up,
        "another sign of life",
    )
    conductor.stop()
    cloud.admin.compute.delete_service(shown.id)


@pytest.mark.embedded("reports for a compute")
def test_reports_do_not_wait_for_super_conductors(cloud: Cloud) -> None:
    """With nobody on the other end of the queue."""
    conductor, database, queue = conductor_of_cell1(cloud, "alone")
    report = cloud.parts.computes["cell1-host1"]._reporter._report()
    assert CellConductorClient(queue).report_host(admin_context(), report=report)
    conductor.stop()
    (service,) = hosts.list_services(database, host="alone")
    hosts.delete_service(database, service.uuid)
