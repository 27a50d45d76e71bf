"""Somebody dies in a live migration while its ports are being wired at the target, as OVN or Open vSwitch's agents do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from causeway.compute.host import vif_events
from causeway.devcloud.switches import Backend
from tests.functional.servers.dying_threads import THREADS_DIE

from . import test_live_crashes as crashes
from .live_cloud import LiveCloud

CLOUD: dict[str, Any] = crashes.CLOUD
pytestmark = THREADS_DIE
STEPS = [point for point in crashes.STEPS if any(step in point for step in ("PrepareTarget", "MigrateGuest", "Arrive"))]
UNDOING = [point for point in crashes.UNDOING if "PrepareTarget" in point]
ORDERS = [point for point in crashes.ORDERS if "pre" in point]


@pytest.fixture(autouse=True, params=[Backend.OVN, Backend.AGENT])
def _wired(request: pytest.FixtureRequest, cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(vif_events, "LOOK_EVERY", 0.2)
    cloud.parts.devcloud.backends = dict.fromkeys(cloud.parts.computes, request.param)
    yield
    cloud.parts.devcloud.backends = {}


@pytest.mark.parametrize("point", [*STEPS, *ORDERS])
def test_a_migration_completes_though_a_conductor_or_the_target_dies(
    cloud: LiveCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, source, memory = crashes.with_memory(cloud)
    dies_at(point)
    assert cloud.migrate_live(server).status_code == 202
    assert crashes.check(cloud, server, source, memory) == "completed"


@pytest.mark.parametrize("point", UNDOING)
def test_a_cancel_leaves_no_announcement_though_a_conductor_dies(
    cloud: LiveCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, source, memory = crashes.with_memory(cloud)
    cloud.busy(server)
    dies_at(point)
    assert cloud.migrate_live(server).status_code == 202
    number = cloud.becomes(server, "running").id
    path = f"/servers/{server.id}/migrations/{number}"
    assert cloud.admin.compute.delete(path, microversion="2.96").status_code == 202
    assert crashes.check(cloud, server, source, memory) == "cancelled"
