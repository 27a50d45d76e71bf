"""PostgreSQL and MariaDB of tests' own, in temporary folders, on sockets and free ports of this machine.

``CAUSEWAY_TEST_POSTGRESQL_URL`` and ``CAUSEWAY_TEST_MARIADB_URL`` name servers to use instead (users that may make databases).
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.ports import free_port
from tests.process_trees import kill_all, signal_all

PATIENCE = 60.0


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


class Server:
    """A database server of a test's own: it may be stopped and started again, with the same port and the same data."""

    def __init__(self, url: str, command: list[str], who: dict[str, object]) -> None:
        self.url = url
        self._command, self._who = command, who
        self._popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Answers when this returns."""
        self._popen = subprocess.Popen(  # type: ignore[call-overload]
            self._command,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Who is at the terminal interrupts the tests, not the server: they end it.
            start_new_session=True,
            **self._who,
        )
        await_answer(self.url, self._popen)

    def stop(self) -> None:
        """Without waiting for its clients to go; stopped before: nothing."""
        if self._popen is not None:
            # To PostgreSQL SIGTERM means that clients may stay for as long as they like; to MariaDB SIGINT means nothing.
            self._popen.send_signal(signal.SIGINT if self.url.startswith("postgresql") else signal.SIGTERM)
            self._popen.wait(30)
            self._popen = None

    def kill(self) -> None:
        """kill -9 of the server and of all that it started."""
        assert self._popen is not None
        kill_all(self._popen.pid)
        self._popen.wait(30)
        self._popen = None

    def freeze(self) -> None:
        """It keeps its connections, and answers nobody."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        # Each of PostgreSQL's processes is a session of its own.
        assert self._popen is not None
        signal_all(self._popen.pid, number)


def postgresql(folder: Path) -> Server:
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
        # Neutron's joins look costly, so that each is compiled, which takes far longer than to run it on tables this small.
        "jit": "off",
        "max_connections": 1000,
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    command = [str(bin_dir / "postgres"), "-D", str(data), *options]
    return Server(f"postgresql+psycopg2://test@127.0.0.1:{port}/postgres", command, who)


def mariadb(folder: Path) -> Server:
    daemon, install = shutil.which("mariadbd", path="/usr/sbin:/usr/bin"), shutil.which("mariadb-install-db")
    if daemon is None or install is None:
        pytest.skip("MariaDB is not installed")
    who, port = account("mysql"), free_port()
    # In a folder that it shares with others a server that starts deletes their temporary tables.
    data, temporary = folder / "mariadb", folder / "tmp"
    for own in (data, temporary):
        own.mkdir()
        if who:
            shutil.chown(own, "mysql", "mysql")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    setup = [
        install,
        "--no-defaults",
        f"--datadir={data}",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        f"--tmpdir={temporary}",
    ]
    subprocess.run(setup, check=True, cwd="/", **quiet, **who)  # type: ignore[call-overload]
    settings = [f"--datadir={data}", f"--socket={data}/s", f"--port={port}", "--bind-address=127.0.0.1"]
    settings.append(f"--tmpdir={temporary}")
    tuning = [
        # To the system, not to the disk: what is committed survives kill -9, as it does in PostgreSQL without fsync.
        "--innodb-flush-log-at-trx-commit=2",
        "--max-connections=300",
        "--skip-grant-tables",
        "--skip-networking=0",
    ]
    command = [daemon, "--no-defaults", *settings, *tuning]
    return Server(f"mysql+pymysql://root@127.0.0.1:{port}/mysql?charset=utf8mb4", command, who)


@contextmanager
def own_server(kind: str) -> Iterator[tuple[Callable[[str], str], Server]]:
    """As `database_server`, and the server itself, which may be stopped and started."""
    # Below the tests' own folders nobody else may look, and the servers have accounts of their own.
    folder = Path(tempfile.mkdtemp(prefix="causeway-databases-"))
    folder.chmod(0o755)
    server = {"postgresql": postgresql, "mariadb": mariadb}[kind](folder)
    try:
        server.start()
        main = _admin(server.url)
        yield _maker(main, set()), server
        main.dispose()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


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
    with own_server(kind) as (new_database, _server):
        yield new_database


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
