"""A conductor has many more moves under way than it has threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from tests.functional.servers.moves_cloud import PATIENCE, Cloud, until

THREADS = 2
MOVES = 3 * THREADS

pytestmark = pytest.mark.embedded("counts threads of the conductor's process")


@pytest.fixture
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    parts = EmbeddedCloud(
        tmp_path_factory.mktemp("many"), port=0, hosts_per_cell=2, overrides={"moves": {"workers": THREADS}}
    )
    parts.start()
    try:
        yield Cloud(parts)
    finally:
        parts.stop()


@pytest.fixture
def copying(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Semaphore, threading.Event]]:
    """Each copy of a running guest's disks that begins, and what they all wait for."""
    begun, gate = threading.Semaphore(0), threading.Event()
    for compute in cloud.embedded.computes.values():
        driver: Any = compute.host.driver

        def begin(*args: Any, works: Any = driver.begin_round, **more: Any) -> Any:
            begun.release()
            assert gate.wait(PATIENCE)
            return works(*args, **more)

        monkeypatch.setattr(driver, "begin_round", begin)
    try:
        yield begun, gate
    finally:
        gate.set()


def test_transfers_that_only_wait_hold_no_thread(
    cloud: Cloud, copying: tuple[threading.Semaphore, threading.Event]
) -> None:
    begun, gate = copying
    servers = [cloud.boot(f"mover{number}") for number in range(MOVES)]
    for server in servers:
        cloud.member.compute.resize_server(server.id, "gen2.small")
    for _ in servers:
        assert begun.acquire(timeout=PATIENCE), "a move has no thread"
    assert (
        sum(thread.name.startswith("sagas-") and thread.name[-1].isdigit() for thread in threading.enumerate())
        <= THREADS
    )
    # What takes no time goes by them.
    other = cloud.boot("passes by", flavor="gen2.small")
    cloud.member.compute.stop_server(other.id)
    cloud.wait(other, "SHUTOFF")
    # The hosts have said that their answers come late.
    until(lambda: _calls_that_hold_threads(cloud), lambda count: count == 0, "all calls to be answered")
    gate.set()
    for server in servers:
        cloud.wait(server, "VERIFY_RESIZE")
        cloud.confirmed(server)
    assert [cloud.cleanups(server, "cell1") for server in servers] == [[]] * MOVES


def _calls_that_hold_threads(cloud: Cloud) -> int:
    """Of the threads that wait for answers to calls of tasks."""
    callers: Any = cloud.embedded.around.transports.callers
    return len(callers._threads) - callers._idle_semaphore._value
