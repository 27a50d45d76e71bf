"""``causeway manage db archive-deleted-rows`` and ``purge``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from causeway.cli.main import cli
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.instance import ActionEvent, Instance, InstanceAction, InstanceFault
from causeway.model.operations import Operation
from causeway.model.states import VmState
from causeway.store.api import cells, journal, mappings
from causeway.store.cell import copies, instances
from causeway.store.database import Database, utcnow
from causeway.store.shadow_tables import SHADOWS

Manage = Callable[..., Result]
CELLS = ("cell1", "cell2")


@pytest.fixture
def manage(tmp_path: Path) -> Manage:
    """A cloud with cell0, cell1 and cell2; runs ``causeway manage db ...``."""
    options = tmp_path / "causeway.conf"
    options.write_text(f"[api_database]\nconnection = sqlite:///{tmp_path}/api.sqlite\n")

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli, ["manage", *arguments, f"--config-file={options}"])

    assert run("db", "sync", "--cell0", f"sqlite:///{tmp_path}/cell0.sqlite").exit_code == 0
    for name in CELLS:
        url = f"sqlite:///{tmp_path}/{name}.sqlite"
        made = run("cell", "create", "--name", name, "--transport-url", "fake://", "--database-connection", url)
        assert made.exit_code == 0, made.output
    return lambda *arguments: run("db", *arguments)


class Records:
    def __init__(self, directory: Path) -> None:
        self.api = Database(f"sqlite:///{directory}/api.sqlite", "the API")
        self.cells = {name: Database(f"sqlite:///{directory}/{name}.sqlite", name) for name in ("cell0", *CELLS)}
        self.uuids = {cell.name: cell.uuid for cell in cells.list_cells(self.api)}

    def server(self, number: int, cell: str = "cell1", *, deleted: bool = True, mapped_to: str | None = None) -> str:
        """A server with a volume, an action with its event, and a fault: five rows."""
        uuid = f"a0000000-0000-0000-0000-{number:012}"
        flavor = Flavor(id=1, flavorid="1", name="small", vcpus=1, memory_mb=64, root_gb=1)
        action = InstanceAction("create", uuid, f"req-{number}", start_time=utcnow())
        action.events = [ActionEvent("compute__do_build_and_run_instance", start_time=utcnow())]
        copies.write(
            self.cells[cell],
            copies.Bundle(
                Instance(uuid, "project", "user", "server", flavor, vm_state=VmState.ACTIVE),
                [BlockDevice(f"b0000000-0000-0000-0000-{number:012}", uuid, "image", "local", boot_index=0)],
                [action],
                [InstanceFault(500, "failed")],
            ),
        )
        if deleted:
            instances.soft_delete(self.cells[cell], uuid)
        with self.api.write() as connection:
            home = self.uuids[mapped_to or cell]
            mappings.insert_in(connection, mappings.InstanceMapping(uuid, "project", "user", utcnow(), home))
            mappings.save_spec_in(connection, uuid, {"instance_uuid": uuid})
        return uuid

    def is_mapped(self, uuid: str) -> bool:
        query = sa.select(mappings.TABLE.c.instance_uuid).where(mappings.TABLE.c.instance_uuid == uuid)
        with self.api.read() as connection:
            return connection.execute(query).first() is not None

    def archived(self, cell: str = "cell1") -> dict[str, int]:
        with self.cells[cell].read() as connection:
            return {
                name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                for name, table in SHADOWS.items()
            }


@pytest.fixture
def records(manage: Manage, tmp_path: Path) -> Records:  # noqa: ARG001 - it has made the databases
    return Records(tmp_path)


def test_only_deleted_servers_are_moved_each_as_a_whole(manage: Manage, records: Records) -> None:
    gone, stays = records.server(1), records.server(2, deleted=False)
    result = manage("archive-deleted-rows", "--verbose")
    assert result.exit_code == 1, result.output
    assert "cell1.instances: 1" in result.output
    assert records.archived() == dict.fromkeys(SHADOWS, 1)
    assert not copies.exists(records.cells["cell1"], gone) and not records.is_mapped(gone)
    assert copies.read(records.cells["cell1"], stays).actions[0].events and records.is_mapped(stays)
    again = manage("archive-deleted-rows")
    assert (again.exit_code, again.output) == (0, "Nothing was archived.\n")


def test_no_more_rows_are_archived_at_once_than_asked_for(manage: Manage, records: Records) -> None:
    for number in range(1, 5):
        records.server(number, CELLS[number % 2])
    assert manage("archive-deleted-rows", "--max_rows", "10").exit_code == 1
    assert sum(records.archived(cell)["instances"] for cell in CELLS) == 2
    assert manage("archive-deleted-rows", "--max_rows", "1", "--until-complete").exit_code == 1
    assert sum(records.archived(cell)["instances"] for cell in CELLS) == 4
    assert manage("archive-deleted-rows").exit_code == 0


def test_a_deleted_copy_does_not_take_the_mapping_of_the_living_server(manage: Manage, records: Records) -> None:
    """As in Nova, where archiving while a resize waited for its end purged the server from the API database."""
    copy = records.server(1, "cell1", mapped_to="cell2")
    manage("archive-deleted-rows", "--all-cells")
    assert records.archived("cell1")["instances"] == 1
    assert records.is_mapped(copy)


def test_a_server_that_still_moves_waits(manage: Manage, records: Records) -> None:
    uuid = records.server(1)
    move = Operation(
        id=str(uuid4()), migration_uuid=str(uuid4()), instance_uuid=uuid, recipe="confirm", started_at=utcnow()
    )
    with records.api.write() as connection:
        journal.insert_in(connection, move)
    assert manage("archive-deleted-rows").exit_code == 0
    assert records.is_mapped(uuid)


def test_cell0_is_asked_for(manage: Manage, records: Records) -> None:
    records.server(1, "cell0")
    assert manage("archive-deleted-rows").exit_code == 0
    assert manage("archive-deleted-rows", "--all-cells").exit_code == 1


def test_only_rows_from_before_a_time_are_archived(manage: Manage, records: Records) -> None:
    records.server(1)
    assert manage("archive-deleted-rows", "--before", "2000-01-01").exit_code == 0
    assert manage("archive-deleted-rows", "--before", "2999-01-01T00:00:00").exit_code == 1


def test_archived_rows_are_purged(manage: Manage, records: Records) -> None:
    records.server(1)
    assert manage("purge", "--all").exit_code == 3
    manage("archive-deleted-rows")
    assert manage("purge", "--before", "2000-01-01").exit_code == 3
    result = manage("purge", "--all", "--verbose")
    assert result.exit_code == 0 and "cell1.shadow_instances: 1" in result.output
    assert records.archived() == dict.fromkeys(SHADOWS, 0)
    records.server(2)
    assert manage("archive-deleted-rows", "--purge").exit_code == 1
    assert records.archived() == dict.fromkeys(SHADOWS, 0)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("archive-deleted-rows", "--max_rows", "0"), 2),
        (("archive-deleted-rows", "--max_rows", str(1 << 31)), 2),
        (("archive-deleted-rows", "--before", "yesterday"), 4),
        (("purge",), 1),
        (("purge", "--all", "--before", "2000-01-01"), 1),
        (("purge", "--before", "yesterday"), 2),
    ],
)
def test_bad_arguments_are_refused_with_their_status(manage: Manage, arguments: tuple[str, ...], status: int) -> None:
    assert manage(*arguments).exit_code == status


def test_archiving_without_an_api_database_fails(tmp_path: Path) -> None:
    options = tmp_path / "causeway.conf"
    options.write_text(f"[api_database]\nconnection = sqlite:///{tmp_path}/no/such/directory.sqlite\n")
    result = CliRunner().invoke(cli, ["manage", "db", "archive-deleted-rows", f"--config-file={options}"])
    assert result.exit_code == 3
