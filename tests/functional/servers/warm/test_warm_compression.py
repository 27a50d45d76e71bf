"""What is copied of the disks of a running guest travels compressed where that pays, to hosts that can read it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from causeway.compute.disks import changes, packing, rounds
from causeway.compute.handover import part_fetch, warm
from causeway.model.warm import CopyRound, RoundReceived
from causeway.rpc.transport import Outgoing, Verdict
from tests.functional.servers.moves_cloud import PATIENCE, Cloud
from tests.functional.servers.warm.test_warm_moves import (
    content,
    has_moved,
    resize,
    server,
    source,
    way,
    without_cold_copies,
)

__all__ = ["server", "way"]

pytestmark = pytest.mark.embedded("looks into hosts, and at calls")


@pytest.fixture
def slow_link(cloud: Cloud, server: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """What compresses well, over a link on which it pays, in parts of which each is probed; returns its size."""
    monkeypatch.setattr(rounds, "PART_BYTES", 32 << 10)
    monkeypatch.setattr(packing, "PROBE_BYTES", 8 << 10)
    monkeypatch.setattr(warm, "_MEASURED_BYTES", 1)
    host = source(cloud, server)
    for number in range(100):
        host.guest_write(server.id, f"{number} " * 500)
    # Time that passes as on a link of 1 MiB a second.
    of_host = cloud.parts.computes[host.hostname].host.rounds
    monkeypatch.setattr(of_host, "_slow_down", lambda size: time.sleep(size / 2**20))
    return sum(len(line) for line in host.guest_read(server.id))


def test_what_compresses_well_travels_compressed_over_a_slow_link(
    cloud: Cloud, server: Any, way: str, slow_link: int
) -> None:
    without_cold_copies(cloud)
    order = "prep_snapshot_based_resize_at_source"
    with cloud.held(order) as arrived:
        resize(cloud, server, way)
        assert arrived.wait(PATIENCE)
        for number in range(100):
            source(cloud, server).guest_write(server.id, f"late {number} " * 100)
    has_moved(cloud, server)
    memory = cloud.moves(server)[0].data
    assert memory["warm"]["ended"] is None
    assert memory["warm"]["sent"] < slow_link * 3 / 4
    # What is left when the guest is off, too.
    last = memory["offer"]["disks"][0]["size"] if memory["offer"] else memory["snapshot"]["size"]
    assert last < sum(len(f"late {number} " * 100) for number in range(100)) / 2
    assert "99 " * 500 in content(cloud, server)
    assert "late 99 " * 100 in content(cloud, server)


def test_an_operator_may_have_nothing_compressed(cloud: Cloud, server: Any, way: str, slow_link: int) -> None:
    cloud.option("compression", "never", "moves")
    resize(cloud, server, way)
    has_moved(cloud, server)
    assert cloud.moves(server)[0].data["warm"]["sent"] >= slow_link
    assert "99 " * 500 in content(cloud, server)


@pytest.mark.parametrize("lacks", ["source", "target"])
def test_hosts_that_lack_a_compression_get_none(
    cloud: Cloud, server: Any, way: str, slow_link: int, lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host names the ways that it knows, which may be none."""
    if lacks == "target":
        monkeypatch.setattr(part_fetch, "_HEADERS", {"Accept-Encoding": "identity"})
        monkeypatch.setattr(warm, "RoundReceived", lambda sent, _codings, **_newer: RoundReceived(sent))
        monkeypatch.setattr(changes, "unpacked", None)
    else:
        monkeypatch.setattr(rounds, "CopyRound", lambda *given, **_newer: CopyRound(*given[:5]))
        works = rounds.Rounds.read_part
        monkeypatch.setattr(rounds.Rounds, "read_part", lambda *given: works(*given[:5]))
    without_cold_copies(cloud)
    seen: list[Any] = []

    def on_send(message: Outgoing) -> Verdict:
        if message.method == "send_part":
            seen.append(message.arguments)
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    resize(cloud, server, way)
    has_moved(cloud, server)
    assert cloud.moves(server)[0].data["warm"]["sent"] >= slow_link
    assert not any(given["codings"] for given in seen)
    assert "99 " * 500 in content(cloud, server)
