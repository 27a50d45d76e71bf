"""Disks from host to host: offered by files and a secret, fetched over HTTP, checked by digest, continued with after a break."""

from __future__ import annotations

import logging
import os
import threading
import uuid as uuids
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from causeway import errors
from causeway.compute.disks import disk_server
from causeway.compute.disks.disk_offers import DiskOffers
from causeway.compute.handover import disk_fetch
from causeway.conf import new_config
from tests.unit.compute.transfers import MIB, MOVE, SERVER, Fetching, Pair, new_server


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    monkeypatch.setattr(disk_fetch, "PAUSE", 0.01)
    made = Pair(
        tmp_path,
        DiskOffers(tmp_path / "offers"),
        new_server(tmp_path),
        Fetching(new_config(disk_transfer_patience=0.5)),
    )
    made.server.start()
    yield made
    made.server.stop()


def break_after(monkeypatch: pytest.MonkeyPatch, sizes: list[int]) -> list[int]:
    """The source's connections break after so many bytes each; returns where each answer began."""
    sent, began = disk_server._content, []

    def content(path: Path, first: int) -> Iterator[bytes]:
        began.append(first)
        if not sizes:
            yield from sent(path, first)
            return
        with path.open("rb") as file:
            file.seek(first)
            yield file.read(sizes.pop(0))
        raise ConnectionResetError("broken by the test")

    monkeypatch.setattr(disk_server, "_content", content)
    return began


def test_a_disk_comes_as_it_was_offered_and_reports_its_progress(pair: Pair) -> None:
    content, reported = os.urandom(3 * MIB + 5), [0]
    path = pair.fetch(pair.offer(content), reported)
    assert path.read_bytes() == content
    assert reported == sorted(reported) and reported[-1] == len(content)
    assert [each.name for each in pair.directory.glob("*.partial")] == []


def test_runs_of_zeros_take_no_room(pair: Pair) -> None:
    content = os.urandom(MIB) + bytes(64 * MIB)
    path = pair.fetch(pair.offer(content))
    assert path.stat().st_size == len(content)
    assert path.stat().st_blocks * 512 < 8 * MIB
    assert path.read_bytes() == content


def test_an_empty_disk_is_a_disk(pair: Pair) -> None:
    assert pair.fetch(pair.offer(b"")).read_bytes() == b""


def test_connections_that_break_are_replaced(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    content = os.urandom(4 * MIB)
    began = break_after(monkeypatch, [MIB, MIB // 2])
    assert pair.fetch(pair.offer(content)).read_bytes() == content
    assert began == [0, MIB, MIB + MIB // 2]


def test_a_source_that_restarts_is_waited_for(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    content = os.urandom(4 * MIB)
    offer, sent, began, restarted = pair.offer(content), disk_server._content, [], threading.Event()

    def restart() -> None:
        pair.restart()
        restarted.set()

    restarting = threading.Thread(target=restart, name="restart")

    def served(path: Path, first: int) -> Iterator[bytes]:
        began.append(first)
        if first == 0:
            with path.open("rb") as file:
                yield file.read(MIB)
            restarting.start()
        if not restarted.is_set():
            raise ConnectionResetError("broken by the test")
        yield from sent(path, first)

    monkeypatch.setattr(disk_server, "_content", served)
    pair.target.conf.set_override("disk_transfer_patience", 30.0)
    assert pair.fetch(offer).read_bytes() == content
    restarting.join()
    assert pair.server.url in offer.url, "the same port again"
    assert began[0] == 0 and set(began[1:]) == {MIB}


def test_a_source_that_is_gone_is_abandoned(pair: Pair) -> None:
    offer = pair.offer(b"content")
    pair.server.stop()
    with pytest.raises(errors.DiskTransferFailed, match="0 of 7 bytes arrived"):
        pair.fetch(offer)
    assert list(pair.directory.glob(".fetched*")) == []


def test_a_host_that_stops_does_not_wait(pair: Pair) -> None:
    offer = pair.offer(b"content")
    pair.server.stop()
    pair.target.conf.set_override("disk_transfer_patience", 3600.0)
    pair.target.stopping.set()
    with pytest.raises(errors.DiskTransferFailed):
        pair.fetch(offer)


@pytest.mark.parametrize("damage", [lambda data: data[:-1] + b"?", lambda data: data + b"more"])
def test_what_is_not_what_was_offered_is_refused(pair: Pair, damage: Any) -> None:
    offer = pair.offer(b"content")
    path = pair.offers.path(MOVE, "disk")
    assert path is not None
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(errors.DiskTransferFailed):
        pair.fetch(offer)
    assert not (pair.directory / "fetched").exists()


def test_a_transfer_that_nobody_wants_any_more_ends(pair: Pair) -> None:
    offer = pair.offer(os.urandom(MIB))

    def cancelled(_done: int) -> None:
        raise errors.Cancelled("The move was cancelled.")

    with pytest.raises(errors.Cancelled):
        disk_fetch.fetch(pair.target, offer, offer.disks[0], pair.directory / "fetched", cancelled)
    assert list(pair.directory.glob(".fetched*")) == []


@pytest.mark.parametrize("secret", ["", "Bearer ", "Bearer wrong", "wrong", "Bearer \u00e9"])
def test_nobody_reads_a_disk_without_its_secret(pair: Pair, secret: str) -> None:
    offer = pair.offer(b"content")
    headers = {"Authorization": secret.encode()}
    for method in ("GET", "DELETE"):
        assert requests.request(method, f"{offer.url}/disk", headers=headers, timeout=60).status_code == 401
    assert requests.delete(offer.url, headers=headers, timeout=60).status_code == 401
    assert pair.fetch(offer).read_bytes() == b"content"


@pytest.mark.parametrize("path", ["", "/manifest.json", "/disk.eph0", "/..%2f..%2fport", "/%2e%2e", "/disk/more"])
def test_nothing_but_offered_disks_is_served(pair: Pair, path: str) -> None:
    offer = pair.offer(b"content")
    headers = {"Authorization": f"Bearer {offer.token}"}
    assert requests.get(offer.url + path, headers=headers, timeout=60).status_code == 404
    base = offer.url.rpartition("/")[0]
    for other in (str(uuids.uuid4()), "*", "..", f"{MOVE}.{SERVER}"):
        assert requests.get(f"{base}/{other}/disk", headers=headers, timeout=60).status_code == 404


def test_an_offer_ends_when_the_disk_has_come(pair: Pair) -> None:
    offer = pair.offer(b"content")
    pair.fetch(offer)
    disk_fetch.release(pair.target, offer)
    assert pair.offers.servers() == set()
    with pytest.raises(errors.DiskTransferFailed, match="does not offer"):
        pair.fetch(offer)


def test_an_offer_made_again_is_the_same(pair: Pair) -> None:
    assert pair.offer(b"content") == pair.offer(b"something else")
    pair.offers.end_all(SERVER)
    assert pair.offer(b"something else").disks[0].size == len(b"something else")


def test_what_was_not_finished_is_no_offer(pair: Pair) -> None:
    def fails(_name: str) -> Any:
        raise errors.GuestFailed("The disk can't be read.")

    with pytest.raises(errors.GuestFailed):
        pair.offers.make(MOVE, SERVER, ["disk"], fails)
    assert pair.offers.find(MOVE) is None
    assert pair.offer(b"content").shown == 7


def test_the_secret_is_not_shown(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    offer = pair.offer(b"content")
    pair.fetch(offer)
    pair.server.stop()
    with pytest.raises(errors.DiskTransferFailed) as failed:
        pair.fetch(offer)
    shown = caplog.text + repr(offer) + repr(pair.offers.find(MOVE)) + str(failed.value) + failed.value.details
    assert offer.token not in shown
    assert (pair.directory / "offers" / f"{MOVE}.{SERVER}" / "manifest.json").stat().st_mode & 0o077 == 0
