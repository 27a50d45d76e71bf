"""Faults that left something behind once, each in the middle of an operation; all of them: ``matrix --of operations``.

A process dies and is started again, a conductor hangs and another one takes over, or services around die in the middle of a
request. Then the operation has taken effect, or the
server is as it was and the same can be asked again; and when the server is deleted, nothing is left of it anywhere.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.cases import Case
from tests.faults.clouds.killed_services import ACTION
from tests.faults.clouds.roles_site import why_not
from tests.faults.operations.batches import OperationCase
from tests.faults.operations.matrix import make_site, run_on, warm
from tests.faults.operations.table import OPERATIONS

BY_NAME = {operation.name: operation for operation in OPERATIONS}
Cases = dict[tuple[str, str], OperationCase]


CRASHES = [
    ("create volume-backed", "rpc.scheduler.select_destinations.request"),
    ("create image-backed", "call.network POST /v2.0/ports.reply"),
    ("unshelve", "driver.spawn.before"),
    ("unshelve across cells", "unshelve_across_cells.SelectHostElsewhere.do.after"),
    ("unshelve across cells", "unshelve_across_cells.MoveRecords.do.after"),
    ("unshelve across cells", "unshelve_across_cells.UnshelveThere.do.after"),
    ("unshelve across cells", "unshelve.SelectHost.do.before"),
    ("move records", "move_records.MoveRecords.do.after"),
    ("move records", "drain.move.noted"),
    ("shelve image-backed", "driver.destroy.after"),
    ("shelve image-backed", "call.image POST /v2/images.reply"),
    ("shelve image-backed", "call.image PUT /v2/images/{image_id}/file.request"),
    ("shelve image-backed", "call.image PUT /v2/images/{image_id}/file.reply"),
    ("create image", "driver.export_running_disk.after"),
    ("rebuild", "driver.destroy.after"),
    ("rebuild", "driver.spawn.before"),
    ("attach volume", "call.volume POST /v3/attachments.reply"),
    ("attach volume", "driver.attach_volume.after"),
    ("detach volume", "driver.detach_volume.after"),
    ("detach volume", "call.volume DELETE /v3/attachments/{attachment_id}.reply"),
    ("swap volume", "driver.copy_volume.after"),
    ("swap volume", "driver.switch_volume.after"),
    ("swap volume", "driver.end_volume_swap.before"),
    ("snapshot volume", "driver.snapshot_volume.after"),
    ("merge files of a volume", "driver.merge_volume_files.after"),
    ("refresh attachment", "driver.detach_volume.after"),
    ("refresh attachment", "call.volume POST /v3/attachments.reply"),
    ("refresh attachment", "call.volume DELETE /v3/attachments/{attachment_id}.request"),
    ("refresh attachment", "call.volume PUT /v3/attachments/{attachment_id}.reply"),
    ("plug", "driver.attach_interface.after"),
    ("unplug", "driver.detach_interface.after"),
    ("plug device", "compute.claim_port_device.after"),
    ("plug device", "rpc.compute.plug_port.request"),
    ("unplug device", "driver.detach_interface.after"),
    ("evacuate image-backed", "driver.spawn.after"),
    ("live-migrate across cells image-backed", "driver.prepare_live_target.after"),
    ("live-migrate across cells image-backed", "live_migration.SwitchInstanceMapping.do.before"),
    ("live-migrate across cells volume-backed", "driver.live_migrate.after"),
    ("near-live-migrate image-backed", "driver.save_memory.after"),
    ("near-live-migrate image-backed", "driver.wake.before"),
    ("near-live-migrate image-backed", "near_live_migration.SwitchInstanceMapping.do.after"),
    ("near-live-migrate volume-backed", "driver.resume_woken.before"),
]
HANGS = [
    ("unshelve across cells", "unshelve_across_cells.UnshelveThere.do.before"),
    ("refresh attachment", "refresh_attachment.ConnectAttachment.do.before"),
    ("shelve image-backed", "shelve.StoreDisk.do.after"),
    ("unshelve", "unshelve.StartGuest.do.after"),
    ("move records", "move_records.ShowRecords.do.before"),
    ("swap volume", "swap_volume.SwitchVolume.do.before"),
    ("evacuate image-backed", "evacuate.RebuildGuest.do.before"),
    ("near-live-migrate image-backed", "near_live_migration.WakeGuest.do.after"),
    ("live-migrate across cells image-backed", "live_migration.MigrateGuest.do.after"),
]


KILLS = [
    ("create image-backed", "call.network PUT /v2.0/ports/{port_id}.reply"),
    ("create volume-backed", "call.network PUT /v2.0/ports/{port_id}.request"),
    ("create image-backed", "call.placement PUT /allocations/{consumer}.half"),
    ("delete image-backed", "call.placement DELETE /allocations/{consumer}.half"),
    ("shelve image-backed", "call.image PUT /v2/images/{image_id}/file.reply"),
    ("shelve image-backed", "call.placement DELETE /allocations/{consumer}.half"),
    ("attach volume", "call.volume PUT /v3/attachments/{attachment_id}.reply"),
    ("detach volume", "call.volume DELETE /v3/attachments/{attachment_id}.reply"),
    ("live-migrate image-backed", "call.placement POST /allocations.half"),
]


def _run(request: pytest.FixtureRequest, directory: Path, action: str) -> Cases:
    """Cases of the tests that are wanted: they share a cloud."""
    wanted = [
        (str(item.callspec.params["operation"]), str(item.callspec.params["point"]))
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and f"{action}_outcomes" in item.fixturenames
    ]
    done = ACTION if action == "kill" else action
    with make_site(done, directory) as site:
        warm(site)
        cases = [Case(BY_NAME[operation], done, point) for operation, point in wanted]
        return {(case.flow.name, case.point): case for case in run_on(site, cases)}


@pytest.fixture(scope="module")
def crash_outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cases:
    return _run(request, tmp_path_factory.mktemp("crashes"), "crash")


@pytest.fixture(scope="module")
def hang_outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cases:
    return _run(request, tmp_path_factory.mktemp("hangs"), "hang")


@pytest.fixture(scope="module")
def kill_outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cases:
    return _run(request, tmp_path_factory.mktemp("kills"), "kill")


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("operation", "point"), CRASHES)
def test_a_crash_leaves_nothing_behind(crash_outcomes: Cases, operation: str, point: str) -> None:
    case = crash_outcomes[operation, point]
    assert case.is_well, str(case)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("operation", "point"), HANGS)
def test_a_takeover_leaves_nothing_behind(hang_outcomes: Cases, operation: str, point: str) -> None:
    case = hang_outcomes[operation, point]
    assert (case.is_well, case.end) == (True, "forward"), str(case)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.parametrize(("operation", "point"), KILLS)
def test_a_service_that_dies_in_a_request_leaves_nothing_behind(
    kill_outcomes: Cases, operation: str, point: str
) -> None:
    case = kill_outcomes[operation, point]
    assert case.is_well, str(case)
