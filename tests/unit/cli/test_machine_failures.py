"""A command that the machine does not let work ends with a sentence."""

from __future__ import annotations

import errno
import os
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from causeway import errors
from causeway.cli import machine_failures
from causeway.cli.main import cli
from causeway.store import database_urls

FOLDER = Path("/srv/cloud")


def of_system(number: int, file: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), file) if file else OSError(number, os.strerror(number))


def of_sqlite(said: str) -> sa.exc.DBAPIError:
    return sa.exc.OperationalError("INSERT", {}, sqlite3.OperationalError(said))


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (of_system(errno.ENOSPC), "The disk of /srv/cloud is full: free some space there, or give another folder."),
        (of_sqlite("database or disk is full"), "The disk of /srv/cloud is full: free some"),
        (
            of_system(errno.EROFS, "/srv/cloud/lock"),
            "/srv/cloud/lock can't be written by this user (Read-only file system)",
        ),
        (
            of_system(errno.EACCES, "/srv/cloud"),
            "/srv/cloud can't be written by this user (Permission denied): give it",
        ),
        (of_sqlite("attempt to write a readonly database"), "/srv/cloud can't be written by this user"),
        (of_system(errno.ENOTDIR, "/srv"), "/srv is no folder."),
        (of_system(errno.EADDRNOTAVAIL), "Cannot assign requested address."),
    ],
)
def test_a_failure_of_the_machine_is_said_with_what_to_do(failure: Exception, sentence: str) -> None:
    with pytest.raises(click.ClickException) as said, machine_failures.reported(FOLDER):
        raise failure
    assert said.value.message.startswith(sentence)


def test_a_mistake_in_a_statement_is_none_of_the_machine() -> None:
    with pytest.raises(sa.exc.OperationalError), machine_failures.reported(FOLDER):
        raise of_sqlite("no such table: instances")


@pytest.fixture
def port() -> Iterator[int]:
    """One that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


@pytest.mark.parametrize("command", ["up", "devcloud"])
def test_a_port_in_use_is_named(tmp_path: Path, port: int, command: str) -> None:
    ended = CliRunner().invoke(cli, [command, f"--state-dir={tmp_path}/state", f"--port={port}"])
    assert ended.exit_code == 1
    assert ended.output.endswith(f"Error: Port {port} is in use; give another --port.\n")


def test_a_port_of_consoles_in_use_is_named(tmp_path: Path, port: int) -> None:
    ended = CliRunner().invoke(cli, ["up", f"--state-dir={tmp_path}/state", "--port=0", f"--console-port={port}"])
    assert ended.output.endswith(f"Error: Port {port} is in use; give another --console-port.\n")


@pytest.mark.parametrize("command", ["up", "devcloud"])
def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("")
    ended = CliRunner().invoke(cli, [command, f"--state-dir={tmp_path}/file/state", "--port=0"])
    assert ended.output.endswith(f"Error: {tmp_path}/file is no folder.\n")


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgres://u:secret@h/api", "begins with postgres://. Write postgresql:// instead of postgres://."),
        ("foo://u:secret@h/api", "begins with foo://. Write it as postgresql://USER"),
        ("mysql://u:secret@h/api", "begins with mysql://. Write mysql+pymysql:// instead."),
        ("u:secret@h", "is not understood. Write it as postgresql://USER"),
    ],
)
def test_a_url_that_is_not_understood_is_explained_without_its_password(
    url: str, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(errors.Misconfigured) as refused:
        database_urls.parse(url, "the API")
    assert sentence in refused.value.message
    options = tmp_path / "causeway.conf"
    options.write_text(f"[api_database]\nconnection = {url}\n")
    ended = CliRunner().invoke(cli, ["manage", "db", "sync", f"--config-file={options}"])
    assert ended.exit_code == 1
    assert sentence in ended.output and "secret" not in ended.output and "Traceback" not in ended.output


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [("postgresql://u@h/x", "psycopg2", "postgresql"), ("mysql+pymysql://u@h/x", "pymysql", "mysql")],
)
def test_a_driver_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, url: str, module: str, extra: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == module else name)
    with pytest.raises(errors.Misconfigured, match=f"needs {module}: install causeway with its extra '{extra}'"):
        database_urls.parse(url, "the API")


def test_an_unknown_cloud_is_named_with_those_that_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "clouds.yaml"
    file.write_text(
        "clouds: {one: {auth: {auth_url: 'http://127.0.0.1:1'}}, two: {auth: {auth_url: 'http://127.0.0.1:1'}}}"
    )
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(file))
    ended = CliRunner().invoke(cli, ["operation", "list", "--os-cloud=nowhere"])
    assert ended.exit_code == 2
    assert f"There is no cloud nowhere in {file}, which has one, two." in ended.output
