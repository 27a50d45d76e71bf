"""Heartbeats for calls at work."""

from __future__ import annotations

import threading

from causeway.rpc.heartbeat import Heartbeats

TIMEOUT = 60


class Incoming:
    """A call as oslo.messaging hands it to a server."""

    def __init__(self, client_timeout: float | None) -> None:
        self.client_timeout = client_timeout
        self.message = {"method": "slow"}
        self.beats = threading.Semaphore(0)

    def heartbeat(self) -> None:
        self.beats.release()


class Broken(Incoming):
    def heartbeat(self) -> None:
        super().heartbeat()
        raise ConnectionError("the message queue is gone")


def test_each_call_at_work_gets_heartbeats_from_one_thread() -> None:
    heartbeats = Heartbeats("test")
    slow, quick, unmonitored, broken = Incoming(0.2), Incoming(0.04), Incoming(None), Broken(0.04)
    threads = threading.active_count()
    with heartbeats.during(slow), heartbeats.during(quick), heartbeats.during(unmonitored), heartbeats.during(broken):
        for call in (slow, quick, broken):
            assert all(call.beats.acquire(timeout=TIMEOUT) for _ in range(2))
        assert threading.active_count() == threads + 1
    assert not unmonitored.beats.acquire(blocking=False)
    heartbeats.stop()
    assert threading.active_count() == threads


def test_heartbeats_end_with_the_call_and_work_again_after_a_stop() -> None:
    heartbeats = Heartbeats("test")
    for _ in range(2):
        call = Incoming(0.04)
        with heartbeats.during(call):
            assert call.beats.acquire(timeout=TIMEOUT)
        other = Incoming(0.04)
        while call.beats.acquire(blocking=False):
            pass
        with heartbeats.during(other):
            assert all(other.beats.acquire(timeout=TIMEOUT) for _ in range(3))
        assert not call.beats.acquire(blocking=False)
        heartbeats.stop()
