"""Commands and roles whose configuration names a database of Nova end with one sentence, and change nothing in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from causeway.cli.main import cli
from tests.unit.store.nova_databases import content, nova_api_database, nova_cell_database

CAUSEWAY = str(Path(sys.executable).with_name("causeway"))
ONE_OF_NOVAS = "is one of Nova's. Causeway needs databases of its own. Nothing in it was changed"
CREDENTIALS = "\n[placement]\nauth_type = none\nendpoint_override = http://127.0.0.1:1/\n"
QUEUE = "[DEFAULT]\ntransport_url = rabbit://127.0.0.1:1/cloud\n"


def configured(tmp_path: Path, text: str) -> str:
    file = tmp_path / "causeway.conf"
    file.write_text(text)
    return f"--config-file={file}"


@pytest.mark.parametrize(
    "command",
    [
        ("manage", "db", "sync"),
        ("manage", "cell", "list"),
        ("manage", "cell", "discover-hosts"),
        ("manage", "db", "archive-deleted-rows", "--all-cells"),
        ("manage", "cell", "map-instances", "--cell-uuid", "33333333-3333-3333-3333-333333333333"),
        ("manage", "status"),
    ],
)
def test_a_command_that_is_given_the_api_database_of_nova_says_so(tmp_path: Path, command: tuple[str, ...]) -> None:
    url = nova_api_database(tmp_path)
    before = content(url)
    given = configured(tmp_path, f"[api_database]\nconnection = {url}\n")
    ended = CliRunner().invoke(cli, [*command, given], env={"COLUMNS": "400"})
    assert ended.exit_code != 0
    assert ONE_OF_NOVAS in " ".join(ended.output.split())
    assert ended.exception is None or isinstance(ended.exception, SystemExit)
    assert content(url) == before


@pytest.mark.parametrize("role", ["api", "metadata", "conductor", "scheduler", "console-proxy"])
def test_no_role_starts_with_the_api_database_of_nova(tmp_path: Path, role: str) -> None:
    url = nova_api_database(tmp_path)
    before = content(url)
    metadata = "\n[neutron]\nservice_metadata_proxy = true\nmetadata_proxy_shared_secret = secret\n"
    given = configured(tmp_path, f"{QUEUE}[api_database]\nconnection = {url}\n{CREDENTIALS}{metadata}")
    ended = subprocess.run([CAUSEWAY, role, given], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert ended.returncode != 0
    assert f"Error: The database of the API {ONE_OF_NOVAS}" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert content(url) == before


def test_no_conductor_of_a_cell_starts_with_the_database_of_novas_cell(tmp_path: Path) -> None:
    url = nova_cell_database(tmp_path)
    before = content(url)
    given = configured(tmp_path, f"{QUEUE}[conductor]\nrole = cell\n[database]\nconnection = {url}\n")
    ended = subprocess.run([CAUSEWAY, "conductor", given], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert ended.returncode != 0
    assert f"Error: The database of the cell {ONE_OF_NOVAS}" in ended.stderr
    assert content(url) == before


@pytest.mark.parametrize(
    "command",
    [
        ("db", "sync", "--cell0"),
        ("cell", "create", "--name", "cell1", "--transport-url", "rabbit://q/", "--database-connection"),
    ],
)
def test_no_cell_gets_the_database_of_a_cell_of_nova(tmp_path: Path, command: tuple[str, ...]) -> None:
    url = nova_cell_database(tmp_path)
    before = content(url)
    given = configured(tmp_path, f"[api_database]\nconnection = sqlite:///{tmp_path}/own.sqlite\n")
    cell0 = ("manage", "db", "sync", "--cell0", f"sqlite:///{tmp_path}/cell0.sqlite", given)
    assert CliRunner().invoke(cli, cell0).exit_code == 0
    ended = CliRunner().invoke(cli, ["manage", *command, url, given])
    assert ended.exit_code == 1
    assert ONE_OF_NOVAS in ended.output
    assert "nova_cell1" not in CliRunner().invoke(cli, ["manage", "cell", "list", given], env={"COLUMNS": "400"}).output
    assert content(url) == before
