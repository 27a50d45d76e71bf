"""A server that the API does not know while its guest runs: the API database was undone by a lost write-ahead log."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from causeway.cli.main import cli
from causeway.store.api import mappings
from causeway.store.cell import instances
from tests.functional.servers.audited_cloud import AuditedCloud

PATH = "/os-causeway/audit/servers/{}?cell={}&host={}"


def lose_mapping(cloud: AuditedCloud, server: Any) -> None:
    """As after ``kill -9`` with the log gone: what was written last was never there."""
    with cloud.parts.api_database.write() as connection:
        for table, column in ((mappings.TABLE, "instance_uuid"), (mappings.SPECS, "instance_uuid")):
            connection.execute(table.delete().where(table.c[column] == server.id))


def status(cloud: AuditedCloud, server: Any) -> int:
    return int(cloud.member.compute.get(f"/servers/{server.id}").status_code)


def remap(cloud: AuditedCloud, server: Any, cell: str, host: str) -> Any:
    return cloud.admin.compute.post(PATH.format(server.id, cell, host))


def test_a_server_whose_mapping_was_lost_is_there_again_and_can_be_moved(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    lose_mapping(cloud, server)
    assert status(cloud, server) == 404
    assert "record.without_mapping" in [found.kind for found in cloud.audit(fix=True).disagreements]

    arguments = ["audit", "--state-dir", str(cloud.parts.state.path), "--map-server", server.id]
    said = CliRunner().invoke(cli, [*arguments, "--cell", host[:5], "--host", host])
    assert said.exit_code == 0, said.output
    assert status(cloud, server) == 200
    assert server.id in [found.id for found in cloud.member.compute.servers()]
    assert cloud.audit().is_clean
    assert cloud.resized(server).compute_host[:5] != host[:5]
    assert cloud.confirmed(server).status == "ACTIVE"


def test_a_server_is_mapped_again_to_the_cell_of_its_guest(cloud: AuditedCloud) -> None:
    """The pivot, the confirm and all that the journal said of them were lost."""
    server = cloud.boot()
    left = cloud.show(server).compute_host
    cloud.resized(server)
    host = cloud.confirmed(server).compute_host
    with cloud.parts.api_database.write() as connection:
        cells = {cell.name: cell.uuid for cell in cloud.parts.cells.mappings()}
        table = mappings.TABLE
        connection.execute(table.update().where(table.c.instance_uuid == server.id).values(cell_uuid=cells[left[:5]]))
    instances.set_hidden(cloud.cell(host[:5]), server.id, True)
    assert status(cloud, server) == 404
    assert remap(cloud, server, host[:5], host).status_code == 200
    assert cloud.show(server).compute_host == host
    assert cloud.audit().is_clean
    assert cloud.resized(server, "any.medium").compute_host != host


@pytest.mark.parametrize("why", ["another host", "another cell", "a second disk", "a move"])
def test_mapping_a_server_is_refused_unless_everything_is_in_that_one_place(cloud: AuditedCloud, why: str) -> None:
    server = cloud.boot()
    host, other = cloud.show(server).compute_host, cloud.other_host(server)
    cell, named = host[:5], host
    if why == "a move":
        cloud.resized(server)
        named = cloud.show(server).compute_host
        cell = named[:5]
    elif why == "a second disk":
        disk = cloud.parts.state.host(other) / "instances" / server.id
        disk.mkdir(parents=True)
    elif why == "another host":
        named = other
    else:
        cell = "cell2" if cell == "cell1" else "cell1"
    before = mappings.get(cloud.parts.api_database, server.id)
    answer = remap(cloud, server, cell, named)
    assert answer.status_code == 409, answer.text
    assert mappings.get(cloud.parts.api_database, server.id) == before
    if why == "a second disk":
        disk.rmdir()


def test_mapping_a_server_is_for_administrators_and_needs_a_place(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    assert cloud.member.compute.post(PATH.format(server.id, host[:5], host)).status_code == 403
    assert remap(cloud, server, "cell9", host).status_code == 400
    assert cloud.admin.compute.post(f"/os-causeway/audit/servers/{server.id}").status_code == 400
