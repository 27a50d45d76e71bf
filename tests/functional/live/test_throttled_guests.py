"""``[moves] throttle``: guests that write faster than they are copied may write less meanwhile, and never longer than that."""

from __future__ import annotations

import re
from typing import Any

import pytest

from causeway import errors
from causeway.rpc.transport import Outgoing, Verdict
from tests.functional.servers.choosing_hosts.test_explain import candidates

from .live_cloud import LiveCloud
from .test_simulated_time import GIB, MIB, booted, embedded, migrated_cold, set_links, slow_links, writes

__all__ = ["embedded", "slow_links"]

pytestmark = pytest.mark.embedded("gives links and guests other speeds")

LIMIT = 50 * MIB


@pytest.fixture
def busy(cloud: LiveCloud) -> Any:
    """Its guest writes twice as fast as its disk is copied, and may be limited to half of that speed."""
    cloud.option("throttle", 0.5, "moves")
    set_links(cloud, 100.0 * MIB)
    return booted(cloud, "busy", gen=1, disk=1000, data=10.0, disk_rate=200.0)


def limit_of(cloud: LiveCloud, host: str, server: Any) -> float | None:
    guest = cloud.driver(host).files.guests.get(server.id)
    assert guest is not None
    return guest.write_limit


def rest_of(move: Any) -> float:
    rest = move.data["snapshot"] or move.data["offer"]["disks"][0]
    found: float = rest["size"] * rest["scale"]
    return found


def test_rounds_become_smaller_and_the_guest_is_off_for_little(cloud: LiveCloud, busy: Any) -> None:
    source, seen, before = cloud.host_of(busy), [], writes(cloud, busy)

    def on_send(message: Outgoing) -> Verdict:
        if message.method in ("receive_round", "receive_part"):
            seen.append(limit_of(cloud, source, busy))
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    move = migrated_cold(cloud, busy)
    warm = move.data["warm"]
    assert warm["rounds"] == 5
    assert 0.8 * LIMIT < warm["write_limit"] < 1.2 * LIMIT
    # The second round shows that it writes too fast.
    assert seen[0] is None and set(seen) == {None, warm["write_limit"]}
    assert warm["change_rate"] < 1.2 * LIMIT
    # 20 GiB in the second round, and half as much in each one after it. Without a limit it would be 40 GiB.
    assert rest_of(move) < 4 * GIB
    assert limit_of(cloud, cloud.host_of(busy), busy) is None
    cloud.reverted(busy)
    assert limit_of(cloud, source, busy) is None
    assert writes(cloud, busy) >= before


def test_nobody_is_limited_unless_an_operator_says_so(cloud: LiveCloud, busy: Any) -> None:
    cloud.option("throttle", 0.0, "moves")
    move = migrated_cold(cloud, busy)
    assert move.data["warm"]["write_limit"] is None
    assert rest_of(move) > 30 * GIB
    cloud.confirmed(busy)


def test_a_guest_that_writes_little_is_not_limited(cloud: LiveCloud) -> None:
    cloud.option("throttle", 0.5, "moves")
    server = booted(cloud, "quiet", gen=1, disk=200, data=10.0, disk_rate=5.0)
    assert migrated_cold(cloud, server).data["warm"]["write_limit"] is None
    cloud.confirmed(server)


def test_a_guest_that_stays_is_not_limited_any_more(cloud: LiveCloud, busy: Any) -> None:
    """The move is rolled back in the round in which it was limited."""
    source, failed = cloud.host_of(busy), []

    def on_send(message: Outgoing) -> Verdict:
        if message.method in ("receive_round", "receive_part") and limit_of(cloud, source, busy) is not None:
            failed.append(message)
            raise errors.NoValidHost("It can't have it.")
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    cloud.admin.compute.migrate_server(busy.id)
    cloud.settle()
    cloud.wait(busy, "ACTIVE")
    assert failed and cloud.host_of(busy) == source
    assert limit_of(cloud, source, busy) is None


def test_explain_says_beforehand_who_writes_too_fast(cloud: LiveCloud, busy: Any) -> None:
    cloud.option("throttle", 0.0, "moves")
    assert "MiB/s" not in travel_of(cloud, busy)
    migrated_cold(cloud, busy)
    cloud.confirmed(busy)
    said = travel_of(cloud, busy)
    assert re.search(r"when they last were, \d+\.\d MiB/s were copied, and it changed \d+\.\d: most of", said)
    assert "[moves] throttle" in said
    cloud.option("throttle", 0.5, "moves")
    assert travel_of(cloud, busy).endswith("it may only write 50% of what is copied meanwhile")


def travel_of(cloud: LiveCloud, server: Any) -> str:
    found: str = candidates(cloud, server)["moves"]["travel"]
    return found
