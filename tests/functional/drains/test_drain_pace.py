"""How fast a drain goes: the bytes a second that it may have, limits that are found out, and what is measured of each move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.drains import How, Limits, Scope
from causeway.store.api import drains as store

from .drains_cloud import CLOUD as OFTEN
from .drains_cloud import DrainsCloud, until

pytestmark = pytest.mark.embedded("gives links and guests other speeds")

MIB, GIB = 1 << 20, 1 << 30
ONE, TWO, THERE = "cell1-host1", "cell1-host2", "cell2-host1"
LINK, LIMIT = 200 * MIB, 10 * MIB
EMPTIED = Scope(hosts=[ONE])


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    folder = Path(tmp_path_factory.mktemp("cloud"))
    overrides = {
        "simulated": {"clock": str(folder / "clock"), "clock_speed": 2000.0, "local_gb": 10000},
        "drains": {**OFTEN["overrides"]["drains"], "measure_interval": 1.0},
    }
    cloud = EmbeddedCloud(folder, port=0, cells=2, hosts_per_cell=2, overrides=overrides)
    cloud.start()
    yield cloud
    cloud.stop()


@pytest.fixture(autouse=True)
def links(cloud: DrainsCloud) -> None:
    for name in cloud.parts.computes:
        cloud.driver(name).link.speed = LINK


def now(cloud: DrainsCloud) -> float:
    found: float = cloud.driver(ONE).link.clock.time()
    return found


def filled(cloud: DrainsCloud, host: str = ONE) -> Any:
    """A server with 2 GiB on its disk."""
    flavor = cloud.flavor("filled", disk=4)
    cloud.admin.compute.create_flavor_extra_specs(flavor, {"simulated:data": "2"})
    return cloud.on(host, flavor=flavor)


@pytest.mark.parametrize(("how", "target"), [(How.WARM, THERE), (How.COLD, THERE), (How.WARM, TWO), (How.LIVE, TWO)])
def test_a_drain_has_no_more_bytes_a_second_than_it_may_have(cloud: DrainsCloud, how: How, target: str) -> None:
    servers = [filled(cloud) for _ in range(2)]
    began = now(cloud)
    limits = Limits(bytes_per_second=LIMIT)
    drain = cloud.started({server.id: (target, how) for server in servers}, limits=limits, scope=EMPTIED, how=how)
    assert cloud.becomes_drain(drain, "done")["progress"]["servers"] == {"done": 2}
    assert {row["how"] for row in cloud.rows(drain).values()} == {how.value}
    assert {cloud.host_of(server) for server in servers} == {target}
    least = len(servers) * 2 * GIB / LIMIT
    # What is sent before a transfer's first report is made up for afterwards, as long as it continues.
    assert now(cloud) - began > 0.8 * least


def test_without_that_limit_it_goes_as_fast_as_links_do(cloud: DrainsCloud) -> None:
    server = filled(cloud)
    began = now(cloud)
    cloud.becomes_drain(cloud.started({server.id: (THERE, How.WARM)}), "done")
    assert now(cloud) - began < 2 * GIB / LIMIT


def test_a_drain_notes_what_each_move_took_and_how_long_its_guest_stood_still(cloud: DrainsCloud) -> None:
    warm, near_live, live, off = (cloud.on(ONE, name, off=name == "off") for name in ("warm", "near", "live", "off"))
    plan: dict[str, tuple[str | None, How | None]] = {
        warm.id: (THERE, How.WARM),
        near_live.id: (THERE, How.NEAR_LIVE),
        live.id: (TWO, How.LIVE),
        off.id: (THERE, How.COLD),
    }
    drain = cloud.started(plan, scope=EMPTIED)
    cloud.becomes_drain(drain, "done")
    rows = cloud.rows(drain)
    assert all(row["took"] > 0 for row in rows.values())
    for server in (warm, near_live):
        assert 0 < rows[server.id]["stood_still"] < rows[server.id]["took"]
    # Its hypervisor does not say; and whose guest was off has lost nothing.
    assert (rows[live.id]["stood_still"], rows[off.id]["stood_still"]) == (None, 0.0)


def test_what_comes_through_is_measured_and_shown(cloud: DrainsCloud) -> None:
    servers = [filled(cloud) for _ in range(2)]
    # So few that the drain continues over several measurements, however late they come.
    limits = Limits(bytes_per_second=MIB // 4)
    drain = cloud.started({server.id: (THERE, How.WARM) for server in servers}, limits=limits)
    until(lambda: cloud.shown(drain)["pacing"], lambda pacing: pacing and pacing["rate"] > 0, "a rate to be shown")
    wanted = {"drain": {"limits": {"bytes_per_second": None}}}
    answer = cloud.admin.compute.put(f"/os-causeway/drains/{drain}", json=wanted, microversion="2.1")
    assert answer.json()["drain"]["request"]["limits"]["bytes_per_second"] is None
    cloud.becomes_drain(drain, "done")


@pytest.mark.parametrize("limit", [0, -1, 1000, 1.5, "fast"])
def test_a_senseless_limit_of_bytes_is_refused(cloud: DrainsCloud, limit: Any) -> None:
    wanted = {"drain": {"name": "x", "scope": {"cells": ["cell1"]}, "limits": {"bytes_per_second": limit}}}
    answer = cloud.admin.compute.post("/os-causeway/drains", json=wanted, microversion="2.1")
    assert answer.status_code == 400 and "bytes_per_second" in answer.text
    assert store.search(cloud.parts.api_database) == []
