"""PostgreSQL and MariaDB of tests' own, in temporary folders, on sockets and free ports of this machine.

``CAUSEWAY_TEST_POSTGRESQL_URL`` and ``CAUSEWAY_TEST_MARIADB_URL`` name servers to use instead (users that may make databases).
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

PATIENCE = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def account(name: str) -> dict[str, object]:
    """Neither server runs as root: it gets an account of its own there."""
    if os.getuid() != 0:
        return {}
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        pytest.skip(f"there is no account {name} to run the server as")
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


def await_answer(url: str, server: subprocess.Popen[bytes]) -> None:
    engine, end = sa.create_engine(url), time.monotonic() + PATIENCE
    while True:
        try:
            engine.connect().close()
            engine.dispose()
            return
        except sa.exc.OperationalError:
            assert server.poll() is None, "the database server ended"
            assert time.monotonic() < end, "the database server does not answer"
            time.sleep(0.1)


def postgresql(folder: Path) -> tuple[str, subprocess.Popen[bytes]]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        pytest.skip("PostgreSQL is not installed")
    bin_dir, who, port = found[-1].parent, account("postgres"), free_port()
    data = folder / "postgresql"
    data.mkdir()
    if who:
        shutil.chown(data, "postgres", "postgres")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    init = [str(bin_dir / "initdb"), "-D", str(data), "-U", "test", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"]
    subprocess.run(init, check=True, cwd="/", **quiet, **who)  # type: ignore[call-overload]
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": data,
        "fsync": "off",
        "max_connections": 300,
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    server = subprocess.Popen(  # type: ignore[call-overload]
        [str(bin_dir / "postgres"), "-D", str(data), *options], cwd="/", **quiet, **who
    )
    return f"postgresql+psycopg2://test@127.0.0.1:{port}/postgres", server


def mariadb(folder: Path) -> tuple[str, subprocess.Popen[bytes]]:
    daemon, install = shutil.which("mariadbd", path="/usr/sbin:/usr/bin"), shutil.which("mariadb-install-db")
    if daemon is None or install is None:
        pytest.skip("MariaDB is not installed")
    who, port = account("mysql"), free_port()
    data = folder / "mariadb"
    data.mkdir()
    if who:
        shutil.chown(data, "mysql", "mysql")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    setup = [
        install,
        "--no-defaults",
        f"--datadir={data}",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
    ]
    subprocess.run(setup, check=True, cwd="/", **quiet, **who)  # type: ignore[call-overload]
    settings = [f"--datadir={data}", f"--socket={data}/s", f"--port={port}", "--bind-address=127.0.0.1"]
    tuning = [
        "--innodb-flush-log-at-trx-commit=0",
        "--max-connections=300",
        "--skip-grant-tables",
        "--skip-networking=0",
    ]
    server = subprocess.Popen(  # type: ignore[call-overload]
        [daemon, "--no-defaults", *settings, *tuning], cwd="/", **quiet, **who
    )
    return f"mysql+pymysql://root@127.0.0.1:{port}/mysql?charset=utf8mb4", server


@contextmanager
def database_server(kind: str) -> Iterator[Callable[[str], str]]:
    """A server, as a function that makes a database and gives its URL; the same name gives the same database."""
    given = os.environ.get(f"CAUSEWAY_TEST_{kind.upper()}_URL")
    if given is not None:
        main, made = _admin(given), set[str]()
        yield _maker(main, made)
        with main.connect() as connection:
            for database in made:
                connection.execute(sa.text(f"DROP DATABASE {database}"))
        main.dispose()
        return
    # Below the tests' own folders nobody else may look, and the servers have accounts of their own.
    folder = Path(tempfile.mkdtemp(prefix="causeway-databases-"))
    folder.chmod(0o755)
    url, server = {"postgresql": postgresql, "mariadb": mariadb}[kind](folder)
    try:
        await_answer(url, server)
        main = _admin(url)
        yield _maker(main, set())
        main.dispose()
    finally:
        server.terminate()
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _admin(url: str) -> sa.Engine:
    return sa.create_engine(url, isolation_level="AUTOCOMMIT")


def _maker(main: sa.Engine, made: set[str]) -> Callable[[str], str]:
    prefix = f"causeway_test_{os.getpid()}_"

    def url_of(name: str) -> str:
        database = prefix + name
        if database not in made:
            with main.connect() as connection:
                connection.execute(sa.text(f"CREATE DATABASE {database}"))
            made.add(database)
        return main.url.set(database=database).render_as_string(hide_password=False)

    return url_of
