"""Somebody dies in a near-live migration, or an answer is lost: the guest continues, in one place, with its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway import errors
from causeway.rpc.compute.live_calls import NearLiveCalls
from causeway.rpc.transport import Verdict
from tests.functional.servers.conftest import ProcessDiedError
from tests.functional.servers.dying_threads import SOON_NOTICED, THREADS_DIE

from . import step_points
from .live_cloud import LiveCloud
from .test_near_live import elsewhere

CLOUD = SOON_NOTICED
pytestmark = THREADS_DIE
STEPS, UNDOING = step_points.doing_near_live(), step_points.undoing_near_live()
METHODS = [name for name in vars(NearLiveCalls) if not name.startswith(("_", "check_"))]
FORWARD = [name for name in METHODS if name != "wake_guest_at_source"]
CLEANING_UP = ["save_guest_at_source", "wake_guest_at_dest"]
ORDERS = [
    *(f"compute.{name}.{side}" for name in FORWARD for side in ("before", "after")),
    *(f"driver.{name}.{side}" for name in ("save_memory", "wake", "resume_woken") for side in ("before", "after")),
    *(f"compute.{name}.recorded" for name in CLEANING_UP),
    "disk.fetch.before",
    "disk.fetch.after",
]
# The orders that a migration through the image service has, too.
BY_IMAGES = [f"compute.{name}.{place}" for name in CLEANING_UP for place in ("before", "in", "after", "recorded")]
# Of hosts that do not reach one another any more when the guest stands still.
CUT_OFF = ["compute.send_offered.before", "compute.send_offered.after", "disk.upload.in", "disk.download.in"]


def with_memory(cloud: LiveCloud) -> tuple[Any, str, list[str]]:
    server = cloud.boot(flavor="any.small")
    cloud.attach(server, cloud.volume())
    source = cloud.host_of(server)
    cloud.driver(source).guest_write(server.id, "on disk")
    return server, source, cloud.remember(server, "a line")


def check(cloud: LiveCloud, server: Any, source: str, memory: list[str], there: str) -> str:
    """It ended, in whatever way; returns the migration's status."""
    after = cloud.after(server)
    status: str = cloud.migration(server).status
    assert after.status == "ACTIVE"
    assert after.compute_host == (there if status == "completed" else source), status
    assert cloud.memory(server) == memory
    assert "on disk" in cloud.driver(after.compute_host).guest_read(server.id)
    assert cloud.driver(after.compute_host).saved_memory(server.id) is None
    cloud.check_left_nothing(server, after.compute_host)
    assert {each["status"] for each in cloud.attachments(server)} == {"attached"}
    assert cloud.temporary_images() == []
    return status


@pytest.mark.parametrize("point", [*STEPS, *ORDERS])
def test_a_migration_completes_though_a_conductor_or_a_host_dies(
    cloud: LiveCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, source, memory = with_memory(cloud)
    there = elsewhere(cloud, server)
    dies_at(point)
    assert cloud.migrate_live(server, host=there).status_code == 202
    assert check(cloud, server, source, memory, there) == "completed"


@pytest.mark.parametrize("point", CUT_OFF)
def test_near_live_through_the_image_service_completes_though_somebody_dies(
    cloud: LiveCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, source, memory = with_memory(cloud)
    there = elsewhere(cloud, server)
    cloud.cut_offers()
    dies_at(point)
    assert cloud.migrate_live(server, host=there).status_code == 202
    assert check(cloud, server, source, memory, there) == "completed"
    assert cloud.moves(server)[-1].data["offer"] is None


@pytest.mark.parametrize("point", BY_IMAGES)
def test_a_host_dies_while_everything_goes_through_the_image_service(
    cloud: LiveCloud, dies_at: Callable[[str], None], point: str
) -> None:
    server, source, memory = with_memory(cloud)
    there = elsewhere(cloud, server)
    cloud.option("direct", "never", "moves")
    # Disks that were copied while the guest ran are not copied again.
    cloud.break_driver(list(cloud.parts.computes), "export_disk")
    dies_at(point)
    assert cloud.migrate_live(server, host=there).status_code == 202
    assert check(cloud, server, source, memory, there) == "completed"
    assert cloud.moves(server)[-1].data["warm"]["ended"] is None


def test_nothing_of_its_copies_stays_though_somebody_resumed_the_guest_when_its_host_died(
    cloud: LiveCloud, at_point: Callable[[str, Callable[[], None]], None]
) -> None:
    server, source, memory = with_memory(cloud)
    there = elsewhere(cloud, server)

    def resumed() -> None:
        cloud.driver(there).resume_woken(server.id, is_paused=False)
        raise ProcessDiedError

    at_point("driver.wake.after", resumed)
    assert cloud.migrate_live(server, host=there).status_code == 202
    assert check(cloud, server, source, memory, there) == "completed"
    assert cloud.reality(server)["transfers"] == []


@pytest.mark.parametrize("verdict", [Verdict.LOSE_REQUEST, Verdict.LOSE_REPLY])
@pytest.mark.parametrize("method", FORWARD)
def test_a_message_is_lost(cloud: LiveCloud, method: str, verdict: Verdict) -> None:
    server, source, memory = with_memory(cloud)
    there = elsewhere(cloud, server)
    cloud.lose(method, verdict)
    assert cloud.migrate_live(server, host=there).status_code == 202
    assert check(cloud, server, source, memory, there) == "completed"


@pytest.mark.parametrize("point", UNDOING)
def test_the_undo_of_a_near_live_migration_survives_the_death_of_a_conductor(
    cloud: LiveCloud, dies_at: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    server, source, memory = with_memory(cloud)
    there = elsewhere(cloud, server)
    make_it_fail(cloud, monkeypatch, there)
    dies_at(point)
    assert cloud.migrate_live(server, host=there).status_code == 202
    assert check(cloud, server, source, memory, there) == "failed"


@pytest.mark.parametrize("verdict", [Verdict.LOSE_REQUEST, Verdict.LOSE_REPLY])
@pytest.mark.parametrize("method", ["wake_guest_at_source", "drop_move_at_dest"])
def test_a_message_is_lost_while_it_is_undone(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch, method: str, verdict: Verdict
) -> None:
    server, source, memory = with_memory(cloud)
    there = elsewhere(cloud, server)
    make_it_fail(cloud, monkeypatch, there)
    cloud.lose(method, verdict)
    assert cloud.migrate_live(server, host=there).status_code == 202
    assert check(cloud, server, source, memory, there) == "failed"


def make_it_fail(cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch, there: str) -> None:
    """The guest is there, standing still, and then its target does not say so."""
    driver = cloud.driver(there)
    works = driver.wake

    def wake(*args: Any, **more: Any) -> None:
        works(*args, **more)
        raise errors.GuestFailed("The hypervisor says that it failed.")

    monkeypatch.setattr(driver, "wake", wake)
