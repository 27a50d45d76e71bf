"""Ports that tests give to servers (tests/ports.py) are of one process at a time."""

from __future__ import annotations

import multiprocessing
import socket

import pytest

from tests import ports

# A process that is forked here while other tests' threads hold locks may never end.
SPAWN = multiprocessing.get_context("spawn")
NUMBER = 20


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few that two processes would choose the same ones."""
    first = ports.free_port()
    monkeypatch.setattr(ports, "FIRST", first)
    monkeypatch.setattr(ports, "LAST", min(first + 6 * NUMBER, 32000))


def choose_ports(first: int, last: int) -> list[int]:
    """In another process."""
    ports.FIRST, ports.LAST = first, last
    return ports.free_ports(NUMBER)


def test_another_process_gets_other_ports_although_nobody_listens_there_yet() -> None:
    here = ports.free_ports(NUMBER)
    with SPAWN.Pool(1) as pool:
        there = pool.apply_async(choose_ports, (ports.FIRST, ports.LAST)).get(timeout=60)
    assert len({*here, *there}) == 2 * NUMBER


def test_the_ports_of_a_process_that_ended_are_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with SPAWN.Pool(1) as pool:
        there = pool.apply_async(choose_ports, (ports.FIRST, ports.LAST)).get(timeout=60)
    monkeypatch.setattr(ports, "FIRST", there[0])
    monkeypatch.setattr(ports, "LAST", there[0])
    assert ports.free_ports(1) == [there[0]]


def test_a_port_that_somebody_listens_at_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not ports._is_free(server.getsockname()[1])
