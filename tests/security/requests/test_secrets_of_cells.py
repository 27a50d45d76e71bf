"""Passwords in the URLs of cells come from files or standard input; as arguments they are warned of."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from causeway.cli.manage import manage
from causeway.cli.secret_urls import url_option

URL = "postgresql://causeway:very-secret@host/cell1"


@click.command()
@url_option("--transport-url", "A queue.")
@url_option("--database-connection", "A database.")
def shown(transport_url: str | None, database_connection: str | None) -> None:
    click.echo(f"{transport_url} {database_connection}")


def _run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(shown, arguments, input=given)


def test_a_url_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "database.url"
    file.write_text(f"# of cell1\n{URL}\n")
    result = _run("--database-connection-file", str(file))
    assert result.exit_code == 0
    assert result.stdout == f"None {URL}\n"
    assert result.stderr == ""


def test_both_urls_come_through_standard_input() -> None:
    result = _run("--transport-url-file", "-", "--database-connection-file", "-", given=f"rabbit://u:p@h/\n{URL}\n")
    assert result.stdout.split() == ["rabbit://u:p@h/", URL]


@pytest.mark.parametrize("url", [URL, "rabbit://a:b@one,c:d@two/cell1"])
def test_a_password_as_an_argument_is_warned_of_without_showing_it(url: str) -> None:
    result = _run("--database-connection", url)
    assert result.exit_code == 0
    assert "--database-connection-file" in result.stderr
    assert url not in result.stderr


def test_a_url_without_a_password_needs_no_warning() -> None:
    assert _run("--database-connection", "sqlite:////tmp/cell1.sqlite").stderr == ""


def test_an_empty_file_and_two_urls_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    assert "is empty" in _run("--database-connection-file", str(tmp_path / "empty")).stderr
    assert "not both" in _run("--database-connection", URL, "--database-connection-file", "-", given=URL).stderr


@pytest.mark.parametrize("command", [("cell", "create"), ("cell", "update"), ("db", "sync")])
def test_every_option_with_a_url_has_one_for_a_file(command: tuple[str, ...]) -> None:
    found: click.Command = manage
    for name in command:
        assert isinstance(found, click.Group)
        found = found.commands[name]
    names = {parameter.opts[0] for parameter in found.params}
    for name in names & {"--transport-url", "--database-connection", "--cell0"}:
        assert f"{name}-file" in names
    assert any(name.endswith("-file") and name != "--config-file" for name in names)
