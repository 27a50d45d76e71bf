"""Crashes that left something behind once, each in the middle of an operation; all of them: ``matrix --of operations``.

The process dies once and is started again. Then the operation has taken effect, or the server is as it was and the same can be
asked again; and when the server is deleted, nothing is left of it anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .cases import Case
from .operation_batches import OperationCase
from .operation_matrix import make_site, run_on, warm
from .operations import OPERATIONS

BY_NAME = {operation.name: operation for operation in OPERATIONS}
Cases = dict[tuple[str, str], OperationCase]


CRASHES = [
    ("create volume-backed", "rpc.scheduler.select_destinations.request"),
    ("create image-backed", "call.network POST /v2.0/ports.reply"),
    ("unshelve", "driver.spawn.before"),
    ("shelve image-backed", "driver.destroy.after"),
    ("shelve image-backed", "call.image POST /v2/images.reply"),
    ("shelve image-backed", "call.image PUT /v2/images/{image_id}/file.request"),
    ("shelve image-backed", "call.image PUT /v2/images/{image_id}/file.reply"),
    ("create image", "driver.export_disk.after"),
    ("rebuild", "driver.destroy.after"),
    ("rebuild", "driver.spawn.before"),
    ("attach volume", "call.volume POST /v3/attachments.reply"),
    ("attach volume", "driver.attach_volume.after"),
    ("detach volume", "driver.detach_volume.after"),
    ("detach volume", "call.volume DELETE /v3/attachments/{attachment_id}.reply"),
    ("plug", "driver.attach_interface.after"),
    ("unplug", "driver.detach_interface.after"),
]


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cases]:
    """Of the tests that are wanted: they share a cloud, and crashes of it."""
    wanted = [
        (str(item.callspec.params["operation"]), str(item.callspec.params["point"]))
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and hasattr(item, "callspec")
    ]
    cases = [Case(BY_NAME[operation], "crash", point) for operation, point in wanted]
    with make_site("crash", Path(tmp_path_factory.mktemp("operations"))) as site:
        warm(site)
        yield {(case.flow.name, case.point): case for case in run_on(site, cases)}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("operation", "point"), CRASHES)
def test_a_crash_leaves_nothing_behind(outcomes: Cases, operation: str, point: str) -> None:
    case = outcomes[operation, point]
    assert case.is_well, str(case)
