"""``causeway manage``: databases and cells."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from causeway import errors
from causeway.cli.main import cli
from causeway.model.flavor import Flavor
from causeway.model.host import CELL0_UUID, ComputeNode
from causeway.model.instance import Instance
from causeway.store.api import cells, mappings
from causeway.store.cell import copies, hosts, instances
from causeway.store.database import Database, utcnow

Manage = Callable[..., Result]


@pytest.fixture
def manage(tmp_path: Path) -> Manage:
    """Runs a command of ``causeway manage`` on an API database in ``tmp_path``."""
    options = tmp_path / "causeway.conf"
    options.write_text(f"[api_database]\nconnection = sqlite:///{tmp_path}/api.sqlite\n")

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli, ["manage", *arguments, f"--config-file={options}"])

    return run


@pytest.fixture
def cell1(manage: Manage, tmp_path: Path) -> str:
    """A cloud with cell0 and cell1; the uuid of cell1."""
    assert manage("db", "sync", "--cell0", f"sqlite:///{tmp_path}/cell0.sqlite").exit_code == 0
    made = manage(*new_cell("cell1", tmp_path))
    assert made.exit_code == 0, made.output
    return made.stdout.strip()


@pytest.fixture
def api(tmp_path: Path, cell1: str) -> Database:  # noqa: ARG001 - it has made the database
    return Database(f"sqlite:///{tmp_path}/api.sqlite", "the API")


def new_cell(name: str, tmp_path: Path, transport: str = "rabbit://user:secret@127.0.0.1:5672/cell") -> tuple[str, ...]:
    database = f"sqlite:///{tmp_path}/{name}.sqlite"
    return ("cell", "create", "--name", name, "--transport-url", transport, "--database-connection", database)


def listed(manage: Manage) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in json.loads(manage("cell", "list", "--json").stdout)}


def test_a_first_sync_without_cell0_says_what_is_missing(manage: Manage) -> None:
    result = manage("db", "sync")
    assert result.exit_code == 1
    assert "--cell0" in result.stderr


def test_sync_may_be_repeated_and_reaches_every_cell(manage: Manage, cell1: str) -> None:  # noqa: ARG001
    result = manage("db", "sync")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["API database: up to date", "cell0: up to date", "cell1: up to date"]


def test_one_broken_database_does_not_keep_the_others_from_their_upgrade(
    manage: Manage, cell1: str, api: Database, tmp_path: Path
) -> None:
    (broken,) = (cell for cell in cells.list_cells(api) if cell.uuid == cell1)
    broken.database_connection = f"sqlite:///{tmp_path}/no/such/directory.sqlite"
    cells.save_cell(api, broken)
    manage(*new_cell("cell2", tmp_path))
    result = manage("db", "sync")
    assert result.exit_code == 1
    assert "cell1: FAILED" in result.stderr
    assert "cell2: up to date" in result.stdout


def test_lists_show_no_passwords(manage: Manage, cell1: str) -> None:
    row = listed(manage)["cell1"]
    assert row["uuid"] == cell1
    assert row["transport_url"] == "rabbit://user:***@127.0.0.1:5672/cell"
    assert "secret" not in manage("cell", "list").output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--name", "cell1"), "already"),
        (("--transport-url", "nothing://x"), "transport URL"),
        (("--database-connection", "not a url"), "is not understood"),
    ],
)
def test_cells_that_cannot_work_are_not_made(
    manage: Manage, cell1: str, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    result = manage(*new_cell("cell2", tmp_path), *arguments)
    assert result.exit_code == 1
    assert says in result.stderr
    assert [row["uuid"] for name, row in listed(manage).items() if name != "cell0"] == [cell1]


def test_a_cell_is_disabled_enabled_and_given_other_urls(manage: Manage, cell1: str) -> None:
    assert manage("cell", "update", "cell1", "--disable").exit_code == 0
    assert listed(manage)["cell1"]["disabled"] is True
    changes = ("--enable", "--new-name", "old", "--transport-url", "rabbit://127.0.0.1/other")
    assert manage("cell", "update", cell1, *changes).exit_code == 0
    row = listed(manage)["old"]
    assert (row["disabled"], row["transport_url"]) == (False, "rabbit://127.0.0.1/other")


def test_a_cell_with_hosts_is_not_deleted(manage: Manage, cell1: str, api: Database, tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/cell1.sqlite", "cell1")
    cells.map_host(api, "host1", cell1)
    hosts.report_service(database, "host1", "nova-compute", "compute", 1)
    result = manage("cell", "delete", "cell1")
    assert result.exit_code == 1
    assert "1 host (host1)" in result.stderr
    (service,) = hosts.list_services(database)
    hosts.delete_service(database, service.uuid)
    cells.unmap_host(api, "host1")
    assert manage("cell", "delete", "cell1").exit_code == 0
    assert list(listed(manage)) == ["cell0"]


def test_a_cell_with_servers_is_not_deleted(manage: Manage, cell1: str, api: Database) -> None:
    with api.write() as connection:
        mappings.insert_in(connection, mappings.InstanceMapping("5e", "project", "user", utcnow(), cell1))
    assert "1 server (5e)" in manage("cell", "delete", cell1).stderr
    mappings.queue_for_delete(api, "5e")
    assert manage("cell", "delete", cell1).exit_code == 0


def test_a_cell_with_records_of_other_cells_servers_is_not_deleted(
    manage: Manage, cell1: str, api: Database, tmp_path: Path
) -> None:
    server = Instance("5e", "project", "user", "left", Flavor("1", "f", 1, 1, 1), hidden=True)
    database = Database(f"sqlite:///{tmp_path}/cell1.sqlite", "cell1")
    with database.write() as connection:
        instances.insert(connection, server)
    with api.write() as connection:
        mappings.insert_in(connection, mappings.InstanceMapping("5e", "project", "user", utcnow(), CELL0_UUID))
    assert "records of 1 server (5e) of other cells" in manage("cell", "delete", cell1).stderr
    copies.hard_delete(database, "5e")
    assert manage("cell", "delete", cell1).exit_code == 0


def test_a_host_of_a_deleted_cell_is_not_mapped_again(manage: Manage, cell1: str, api: Database) -> None:
    assert manage("cell", "delete", cell1).exit_code == 0
    with pytest.raises(errors.Conflict, match="was deleted"):
        cells.map_host(api, "host1", cell1)


def test_cell0_is_neither_deleted_nor_disabled(manage: Manage, cell1: str) -> None:  # noqa: ARG001
    assert manage("cell", "delete", "cell0").exit_code == 1
    assert manage("cell", "update", "cell0", "--disable").exit_code == 1
    assert "cell0" in listed(manage)


def test_hosts_that_nobody_mapped_are_discovered(manage: Manage, api: Database, cell1: str, tmp_path: Path) -> None:
    node = ComputeNode("11111111-1111-1111-1111-111111111111", "host1", "host1", "QEMU", 1, 1, 1, 1)
    hosts.save_node(Database(f"sqlite:///{tmp_path}/cell1.sqlite", "cell1"), node)
    first = manage("cell", "discover-hosts")
    assert (first.exit_code, first.stdout) == (0, "cell1: host1\n")
    assert cells.cell_of_host(api, "host1") == cell1
    assert manage("cell", "discover-hosts", "--cell", "cell1").stdout == ""


def test_a_host_whose_name_is_taken_is_reported(manage: Manage, cell1: str, api: Database, tmp_path: Path) -> None:  # noqa: ARG001
    cells.map_host(api, "host1", CELL0_UUID)
    node = ComputeNode("11111111-1111-1111-1111-111111111111", "host1", "host1", "QEMU", 1, 1, 1, 1)
    hosts.save_node(Database(f"sqlite:///{tmp_path}/cell1.sqlite", "cell1"), node)
    reported = manage("cell", "discover-hosts")
    assert reported.exit_code == 1 and "host names are unique over all cells" in reported.stderr


def make_key(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["manage", "queue", "make-key", *arguments])


def test_keys_are_made_once_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    made = make_key("host", "gen1-host1.example", f"--directory={tmp_path}/keys")
    assert made.exit_code == 0, made.output
    private, public = (tmp_path / "keys" / part / "hosts/gen1-host1.example.pem" for part in ("private", "trusted"))
    assert made.stdout == f"private key: {private}\npublic key: {public}\n"
    assert private.stat().st_mode & 0o777 == 0o600 and public.stat().st_mode & 0o777 == 0o644
    assert not private.parent.stat().st_mode & 0o007
    before = private.read_bytes()
    again = make_key("host", "gen1-host1.example", f"--directory={tmp_path}/keys")
    assert again.exit_code == 1 and "exists already" in again.output
    assert private.read_bytes() == before
    # Its namesake of the control plane is somebody else.
    assert make_key("control", "gen1-host1.example", f"--directory={tmp_path}/keys").exit_code == 0


@pytest.mark.parametrize("name", ["", "../host1", "a/b", ".hidden"])
def test_names_that_are_no_files_are_refused(tmp_path: Path, name: str) -> None:
    assert make_key("host", name, f"--directory={tmp_path}").exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("role", ["api", "scheduler", "conductor", "compute", "console-proxy"])
def test_no_service_starts_without_the_keys_that_it_is_to_use(tmp_path: Path, role: str) -> None:
    key = tmp_path / "private.pem"
    options = tmp_path / "causeway.conf"
    options.write_text(f"[DEFAULT]\ntransport_url = rabbit://127.0.0.1:1/\n[rpc_signatures]\nprivate_key = {key}\n")
    started = CliRunner().invoke(cli, [role, f"--config-file={options}"])
    assert started.exit_code == 1 and f"[rpc_signatures] private_key = {key}: there is no file" in started.output
    key.write_text("")
    key.chmod(0o644)
    started = CliRunner().invoke(cli, [role, f"--config-file={options}"])
    assert started.exit_code == 1 and f"chmod o= {key}" in started.output
