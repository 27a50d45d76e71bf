"""Cells are made, closed to scheduling and lost while the cloud runs; nothing is restarted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from causeway.model.host import CellMapping
from causeway.roles.compute import make_compute
from causeway.store import schema
from causeway.store.api import cells as cell_records
from causeway.store.cell import hosts
from causeway.store.database import Database
from causeway.virt.simulated import SimulatedDriver
from tests.functional.servers.moves_cloud import Cloud, until

REFRESH = 0.1
CLOUD = {
    "overrides": {
        "api_database": {"cells_refresh_interval": REFRESH, "cell_timeout": 5.0},
        "scheduler": {"host_state_max_age": 0.0},
    }
}
pytestmark = pytest.mark.embedded("adds a host to this process, which knows when it has seen a cell's change")


@pytest.fixture(scope="module")
def cell3(module_cloud: Cloud) -> Iterator[str]:
    """The host of a cell that was made while the cloud runs, as `causeway manage cell create` makes it."""
    embedded = module_cloud.parts
    url, queue = embedded.state.database("cell3"), embedded._queue("cell3")
    database = Database(url, "cell3")
    schema.sync(database, "cell")
    database.close()
    cell_records.save_cell(embedded.api_database, CellMapping(str(uuid.uuid4()), "cell3", queue, url))
    host, state_dir = "cell3-host1", Path(embedded.state.host("cell3-host1"))
    embedded.devcloud.register_hosts([host])
    service = make_compute(embedded.around_of_hosts, host, SimulatedDriver(host, state_dir), queue, state_dir)
    service.start()
    embedded.computes[host] = service
    yield host
    del embedded.computes[host]
    service.stop()


@contextmanager
def changed(cloud: Cloud, name: str, **changes: Any) -> Iterator[None]:
    """A cell's mapping is another for a while, as `causeway manage cell update` changes it."""
    api = cloud.parts.api_database
    (before,) = [cell for cell in cell_records.list_cells(api) if cell.name == name]
    save(cloud, replace(before, **changes))
    try:
        yield
    finally:
        save(cloud, before)


def save(cloud: Cloud, cell: CellMapping) -> None:
    cell_records.save_cell(cloud.parts.api_database, cell)
    until(lambda: cloud.parts.cells.mapping(cell.uuid), lambda seen: seen == cell, "the cell's change to be seen")


def lost(cloud: Cloud, name: str) -> Any:
    return changed(cloud, name, database_connection="sqlite:////nowhere/at/all.sqlite")


def test_a_new_cell_takes_servers_at_once(cloud: Cloud, cell3: str) -> None:
    assert cell3 in [found.host for found in cloud.admin.compute.services(binary="nova-compute")]
    server = cloud.boot(flavor="any.small")
    # It may have been the best host for the new server already.
    if cloud.show(server).compute_host != cell3:
        cloud.admin.compute.migrate_server(server.id, host=cell3)
        assert cloud.wait(server, "VERIFY_RESIZE").compute_host == cell3
        assert cloud.confirmed(server).compute_host == cell3
    assert server.id in [found.id for found in cloud.member.compute.servers()]
    cloud.admin.compute.migrate_server(server.id)
    cloud.wait(server, "VERIFY_RESIZE")
    assert cloud.reverted(server).compute_host == cell3


def test_a_cell_that_is_closed_to_scheduling_takes_no_new_servers_and_keeps_its_own(cloud: Cloud) -> None:
    there, coming = cloud.boot(flavor="any.small"), cloud.boot()
    if not cloud.show(there).compute_host.startswith("cell2"):
        cloud.admin.compute.migrate_server(there.id, host="cell2-host1")
        cloud.wait(there, "VERIFY_RESIZE")
        cloud.confirmed(there)
    with changed(cloud, "cell2", disabled=True):
        cloud.member.compute.resize_server(coming.id, "gen2.small")
        cloud.failed(coming)
        assert "2 are in cells that are disabled" in cloud.faults(coming)[-1].message
        assert cloud.show(there).status == "ACTIVE"
        # Out of it they may.
        cloud.admin.compute.migrate_server(there.id)
        assert cloud.wait(there, "VERIFY_RESIZE").compute_host.startswith(("cell1", "cell3"))


def test_a_move_into_a_cell_that_is_down_is_refused_or_finds_no_host(cloud: Cloud) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    with lost(cloud, "cell2"):
        cloud.member.compute.resize_server(server.id, "gen2.small")
        cloud.failed(server)
        said = cloud.faults(server)[-1]
        assert "; 1 cell does not answer." in said.message
        assert "1 cell does not answer (cell2)" in said.details
        found = cloud.admin.compute.get(f"/os-causeway/servers/{server.id}/move-candidates?flavor=gen2.small").json()
        assert found["move_candidates"]["silent_cells"] == ["cell2"]
    assert cloud.reality(server) == before


def test_what_waits_for_confirm_is_kept_while_its_other_cell_is_down(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    cloud.without_patience()
    with lost(cloud, "cell1"):
        answer = cloud.member.compute.post(f"/servers/{server.id}/action", json={"confirmResize": None})
        assert answer.status_code == 409 and "the cell that it came from does not answer" in answer.text
        cloud.member.compute.post(f"/servers/{server.id}/action", json={"revertResize": None})
        cloud.wait(server, "VERIFY_RESIZE")
        cloud.settle()
        assert cloud.migration(server).status == "finished"
    assert cloud.reverted(server).status == "ACTIVE"


def test_other_cells_continue_when_one_is_lost(cloud: Cloud) -> None:
    lost_one = cloud.boot(flavor="gen2.small")
    with lost(cloud, "cell2"):
        shown = cloud.admin.compute.get(f"/servers/{lost_one.id}").json()["server"]
        assert shown["status"] == "UNKNOWN"
        listed = {found.id: found.status for found in cloud.member.compute.servers()}
        assert listed[lost_one.id] == "UNKNOWN"
        server = cloud.boot(flavor="any.small")
        cloud.admin.compute.migrate_server(server.id)
        assert cloud.wait(server, "VERIFY_RESIZE").compute_host.startswith(("cell1", "cell3"))
        cloud.confirmed(server)
    assert cloud.show(lost_one).status == "ACTIVE"


def test_a_host_that_reports_is_mapped_by_itself(cloud: Cloud, cell3: str) -> None:
    api = cloud.parts.api_database
    home = cell_records.cell_of_host(api, cell3)
    assert hosts.list_nodes(cloud.parts.cells.database(home), host=cell3)
