"""``causeway manage db sync`` on a running system of the previous schema, on MariaDB and on PostgreSQL.

The processes are really those of the previous release, 0.1.0, taken from the history. Beside devcloud: the real services have no
part in it.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from causeway.store import schema
from causeway.store.api import cells
from causeway.store.database import Database
from tests.functional.processes.deployment import CONDUCTORS, OPTIONS, Deployment
from tests.functional.processes.rabbit import rabbit, why_not
from tests.integration.database_servers import database_server

pytestmark = [pytest.mark.timeout(600), pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

ROOT = Path(__file__).parents[3]
# The subject of its commit.
PREVIOUS = "Release 0.1.0"
MOVERS = 4


def git(*arguments: str) -> bytes:
    if shutil.which("git") is None:
        pytest.skip("the previous version comes from the history: there is no git")
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, timeout=60)
    if done.returncode:
        pytest.skip(f"the previous version comes from the history: {done.stderr.decode()}")
    return done.stdout


def previous_commit() -> str:
    found = git("log", "--format=%H", f"--grep=^{PREVIOUS}$").decode().split()
    if not found:
        pytest.skip(f"the previous version comes from the history, which has no commit {PREVIOUS!r}")
    return found[-1]


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the previous version's package."""
    folder = tmp_path_factory.mktemp("previous")
    archive = folder / "source.tar"
    archive.write_bytes(git("archive", previous_commit(), "src"))
    with tarfile.open(archive) as packed:
        # Python before 3.11.4 has no filters; this archive is our own.
        packed.extractall(folder)
    return folder / "src"


@pytest.fixture(scope="module", params=["mariadb", "postgresql"])
def cloud(request: pytest.FixtureRequest, previous: Path) -> Iterator[Deployment]:
    """Everything is of the previous version."""
    with (
        tempfile.TemporaryDirectory(prefix="causeway-upgrade-", ignore_cleanup_errors=True) as folder,
        database_server(request.param) as new_database,
        rabbit(Path(folder) / "rabbit") as queue,
    ):
        # Simulated hosts of before report this address, whatever their own is.
        here = {**OPTIONS, "DEFAULT": {**OPTIONS["DEFAULT"], "my_ip": "127.0.0.1"}}
        deployment = Deployment(Path(folder), queue, options=here, new_database=new_database)
        deployment.source = previous
        try:
            deployment.start()
            yield deployment
        finally:
            deployment.stop()


def schemas(cloud: Deployment) -> list[schema.SchemaState]:
    """Of the API database and of all cells."""
    found = [schema.state(cloud.api_database, "api")]
    for cell in cells.list_cells(cloud.api_database):
        database = Database(cell.database_connection, cell.name)
        found.append(schema.state(database, "cell"))
        database.close()
    return found


def move(cloud: Deployment, server: Any) -> None:
    """To the other cell, to stay."""
    source = cloud.show(server).compute_host
    cloud.admin.compute.migrate_server(server)
    found = cloud.wait(server, "VERIFY_RESIZE")
    assert found.compute_host != source
    cloud.member.compute.confirm_server_resize(server.id)
    cloud.wait(server, "ACTIVE")


def keep_moving(cloud: Deployment, stop: threading.Event) -> int:
    """Builds, moves and deletes servers, one after the other; how many. Whatever fails is raised."""
    done = 0
    while not stop.is_set():
        server = cloud.boot()
        move(cloud, server)
        assert server.id in {found.id for found in cloud.member.compute.servers()}
        cloud.member.compute.delete_server(server.id)
        cloud.member.compute.wait_for_delete(server, wait=60)
        done += 1
    return done


def test_the_schema_is_upgraded_while_servers_move(cloud: Deployment) -> None:
    """Nothing that continues meanwhile and afterwards fails, with the previous version's processes and then with this one's."""
    assert all(state.current not in (None, state.newest) for state in schemas(cloud)), schemas(cloud)
    stays = cloud.boot()
    move(cloud, stays)
    stop = threading.Event()
    with ThreadPoolExecutor(MOVERS, thread_name_prefix="mover") as pool:
        movers = [pool.submit(keep_moving, cloud, stop) for _ in range(MOVERS)]
        try:
            previous, cloud.source = cloud.source, None
            cloud.manage("db", "sync", f"--config-file={cloud.directory}/databases.conf")
            assert all(state.current == state.newest for state in schemas(cloud)), schemas(cloud)
            # With processes of the previous version on the new schema, and then with conductors of both versions.
            cloud.source = previous
            move(cloud, stays)
            cloud.source = None
            for name in CONDUCTORS:
                cloud.processes[name].terminate()
                assert cloud.processes[name].wait_ended() == 0
                cloud.start_role("conductor", name).wait_ready()
        finally:
            stop.set()
        assert all(mover.result() for mover in movers)
    for name in ("scheduler", "api", *cloud.hosts):
        cloud.processes[name].terminate()
        assert cloud.processes[name].wait_ended() == 0
    cloud.start_role("scheduler", "scheduler")
    cloud.start_role("api", "api", "--bind", cloud.api_url.removeprefix("http://"))
    for host in cloud.hosts:
        cloud.start_role("compute", host)
    for process in cloud.processes.values():
        process.wait_ready()
    move(cloud, stays)
    cloud.settle()
    assert cloud.running_on(stays) == [cloud.show(stays).compute_host]
    errors = [
        line
        for process in cloud.processes.values()
        for line in process.log.splitlines()
        if "ERROR" in line or "Traceback" in line
    ]
    assert errors == []
