"""The upgrade of a running system of the previous release, with operations of every kind under way, on MariaDB and on PostgreSQL.

The processes are really those of the previous release, 0.1.0, taken from the history. Beside devcloud: the real services have no
part in it.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from causeway.store import schema
from causeway.store.api import cells, journal
from causeway.store.database import Database
from tests.functional.processes.deployment import CONDUCTORS, OPTIONS, Deployment
from tests.functional.processes.own_process import until
from tests.functional.processes.rabbit import rabbit, why_not
from tests.integration.database_servers import database_server

pytestmark = [pytest.mark.timeout(600), pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

ROOT = Path(__file__).parents[3]
# The subject of its commit.
PREVIOUS = "Release 0.1.0"


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
    # Release 0.1.0 let oslo.service take Eventlet, which is not installed any more.
    with (folder / "src/causeway/__init__.py").open("a") as package:
        package.write((ROOT / "src/causeway/__init__.py").read_text().partition("annotations\n")[2])
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
        here = {**OPTIONS["DEFAULT"], "my_ip": "127.0.0.1"}
        options = {**OPTIONS, "DEFAULT": here, "quota": {"instances": -1, "cores": -1, "ram": -1}}
        deployment = Deployment(Path(folder), queue, options=options, new_database=new_database)
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


def move_back(cloud: Deployment, server: Any) -> None:
    cloud.admin.compute.migrate_server(server)
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.member.compute.revert_server_resize(server.id)
    cloud.wait(server, "ACTIVE")


def move_live(cloud: Deployment, server: Any) -> None:
    source = cloud.show(server).compute_host
    cloud.admin.compute.live_migrate_server(server, host=None, block_migration="auto")
    assert cloud.wait(server, "ACTIVE").compute_host != source


def shelve(cloud: Deployment, server: Any) -> None:
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.member.compute.unshelve_server(server.id)
    cloud.wait(server, "ACTIVE")


def rescue(cloud: Deployment, server: Any) -> None:
    cloud.member.compute.rescue_server(server.id)
    cloud.wait(server, "RESCUE")
    cloud.member.compute.unrescue_server(server.id)
    cloud.wait(server, "ACTIVE")


def suspend(cloud: Deployment, server: Any) -> None:
    cloud.member.compute.suspend_server(server.id)
    cloud.wait(server, "SUSPENDED")
    cloud.member.compute.resume_server(server.id)
    cloud.wait(server, "ACTIVE")


def rebuild(cloud: Deployment, server: Any) -> None:
    cloud.member.compute.rebuild_server(server.id, image=cloud.show(server).image.id)
    cloud.wait(server, "ACTIVE")


def make_image(cloud: Deployment, server: Any) -> None:
    image = cloud.member.compute.create_server_image(server.id, "kept", wait=True, timeout=60)
    cloud.wait(server, "ACTIVE")
    cloud.member.image.delete_image(image.id)


def attach(cloud: Deployment, server: Any) -> None:
    storage = cloud.member.block_storage
    volume = storage.wait_for_status(storage.create_volume(size=1), "available", interval=1, wait=60)
    cloud.member.compute.create_volume_attachment(server.id, volume_id=volume.id)
    storage.wait_for_status(volume, "in-use", interval=1, wait=60)
    cloud.member.compute.delete_volume_attachment(server.id, volume.id)
    storage.wait_for_status(volume, "available", interval=1, wait=60)
    storage.delete_volume(volume.id)


# What each thread does with its servers, one after the other.
WORK: tuple[tuple[Callable[[Deployment, Any], None], ...], ...] = (
    (move,),
    (move_back, move_live),
    (shelve, rescue, suspend),
    (rebuild, make_image, attach),
)


def keep_working(cloud: Deployment, work: tuple[Callable[[Deployment, Any], None], ...], stop: threading.Event) -> int:
    """Builds servers, works on them and deletes them, one after the other; how many. Whatever fails is raised."""
    done = 0
    while not stop.is_set():
        server = cloud.boot()
        for each in work:
            each(cloud, server)
        assert server.id in {found.id for found in cloud.member.compute.servers()}
        cloud.member.compute.delete_server(server.id)
        cloud.member.compute.wait_for_delete(server, wait=60)
        done += 1
    return done


def made_before(cloud: Deployment) -> list[Callable[[], object]]:
    """Brings servers of the previous release into states; returns what ends each of them with the present one."""
    member = cloud.member.compute
    moved, to_return, shelved, rescued, suspended = servers = [cloud.boot() for _ in range(5)]
    for server in (moved, to_return):
        cloud.admin.compute.migrate_server(server)
    member.shelve_server(shelved.id)
    member.rescue_server(rescued.id)
    member.suspend_server(suspended.id)
    for server in servers:
        cloud.wait(server, "VERIFY_RESIZE", "SHELVED_OFFLOADED", "RESCUE", "SUSPENDED")
    return [
        lambda: member.confirm_server_resize(moved.id),
        lambda: member.revert_server_resize(to_return.id),
        lambda: member.unshelve_server(shelved.id),
        lambda: member.unrescue_server(rescued.id),
        lambda: member.resume_server(suspended.id),
    ]


def test_a_running_system_is_upgraded_while_its_users_work(cloud: Deployment) -> None:
    """Nothing that continues meanwhile and afterwards fails, with the previous version's processes and then with this one's."""
    assert all(state.current not in (None, state.newest) for state in schemas(cloud)), schemas(cloud)
    stays = cloud.boot()
    move(cloud, stays)
    ends = made_before(cloud)
    stop = threading.Event()
    with ThreadPoolExecutor(len(WORK), thread_name_prefix="user") as pool:
        users = [pool.submit(keep_working, cloud, work, stop) for work in WORK]
        try:
            previous, cloud.source = cloud.source, None
            cloud.manage("db", "sync", f"--config-file={cloud.directory}/databases.conf")
            assert all(state.current == state.newest for state in schemas(cloud)), schemas(cloud)
            # With processes of the previous version on the new schema, and then with conductors of both versions.
            cloud.source = previous
            move(cloud, stays)
            cloud.source = None
            for name in CONDUCTORS:
                until(lambda: journal.unfinished(cloud.api_database), bool, "operations to be under way")
                cloud.processes[name].terminate()
                assert cloud.processes[name].wait_ended() == 0
                cloud.start_role("conductor", name).wait_ready()
        finally:
            stop.set()
        assert all(user.result() for user in users)
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
    for end in ends:
        end()
    for server in cloud.member.compute.servers():
        cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.running_on(stays) == [cloud.show(stays).compute_host]
    # What processes of the previous release logged before is theirs.
    logs = [process.log_of_this_life for process in cloud.processes.values()]
    assert [line for log in logs for line in log.splitlines() if "ERROR" in line or "Traceback" in line] == []
