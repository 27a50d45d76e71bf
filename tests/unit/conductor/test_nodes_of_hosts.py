"""Whose a node is, where mappings are of a release that recorded no nodes: of the host that reported it first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from causeway import errors
from causeway.conductor.cells.cloud_records import CloudEndpoint, map_hosts
from causeway.context import admin_context
from causeway.model.host import CellMapping, ComputeNode, HostMapping
from causeway.store import schema
from causeway.store.api import cells as cell_records
from causeway.store.cell import hosts
from causeway.store.cells import Cells
from causeway.store.database import Database
from tests.unit.new_databases import new_database


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Any]:
    """Two cells. "victim" of cell1 and "rogue" of cell2, in this order, reported node "n" to the release before."""
    with ExitStack() as stack:
        api = stack.enter_context(new_database(tmp_path, "api"))
        for name, host in (("cell1", "victim"), ("cell2", "rogue")):
            database = stack.enter_context(closing(Database(f"sqlite:///{tmp_path}/{name}.sqlite", name)))
            schema.sync(database, "cell")
            cell_records.save_cell(api, CellMapping(name, name, "none:///", f"sqlite:///{tmp_path}/{name}.sqlite"))
            cell_records.map_host(api, host, name)
            hosts.save_node(database, ComputeNode("n", host, host, "QEMU", 1, 4, 4096, 40))
        cells = stack.enter_context(closing(Cells(api)))
        yield SimpleNamespace(api=api, cells=cells)


def endpoint(services: Any, cell: str) -> CloudEndpoint:
    nobody: Any = None
    return CloudEndpoint(services, cell, nobody, nobody)


def recorded(services: Any) -> set[HostMapping]:
    return set(cell_records.host_mappings(services.api))


RIGHT = {HostMapping("victim", "cell1", "n"), HostMapping("rogue", "cell2")}


def test_whoever_reports_again_first_does_not_get_the_node(services: Any, caplog: pytest.LogCaptureFixture) -> None:
    rogue, victim = endpoint(services, "cell2"), endpoint(services, "cell1")
    for _again in range(3):
        with pytest.raises(errors.Conflict, match="victim of cell cell1"):
            rogue.map_host(admin_context(), host="rogue", node_uuid="n")
    (line,) = (record.message for record in caplog.records)
    assert "host rogue" in line.lower() and "stop it" in line
    victim.map_host(admin_context(), host="victim", node_uuid="n")
    assert recorded(services) == RIGHT


@pytest.mark.parametrize("first", ["cell1", "cell2"])
def test_a_conductor_that_starts_records_the_nodes(services: Any, first: str, caplog: pytest.LogCaptureFixture) -> None:
    """Also those of hosts that are down, which report no more."""
    for cell in sorted(("cell1", "cell2"), key=lambda name: name != first):
        map_hosts(services, cell)
    assert recorded(services) == RIGHT
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_what_is_recorded_is_not_looked_up_in_the_cells(services: Any) -> None:
    map_hosts(services, "cell1")
    services.cells.ask_all = None
    endpoint(services, "cell1").map_host(admin_context(), host="victim", node_uuid="n")
    map_hosts(services, "cell1")


def test_a_new_host_does_not_get_a_node_that_another_cell_has(services: Any) -> None:
    with pytest.raises(errors.Conflict, match="victim of cell cell1"):
        endpoint(services, "cell2").map_host(admin_context(), host="new", node_uuid="n")
    assert "new" not in cell_records.hosts(services.api)
