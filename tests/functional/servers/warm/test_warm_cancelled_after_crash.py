"""A conductor dies while the disks of a running guest are copied, and the move is cancelled: nothing of the copies is left."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.warm import CopyRound, WarmCopy
from causeway.moves.move_run import Run
from causeway.moves.steps.warm import CopyWhileRunning
from tests.functional.servers.conftest import ProcessDiedError
from tests.functional.servers.dying_threads import THREADS_DIE
from tests.functional.servers.moves_cloud import Cloud, until

from .test_warm_moves import content, resize, server, way

__all__ = ["server", "way"]

CLOUD: dict[str, Any] = {"overrides": {"moves": {"lease": 1.5, "first_pause": 0.1, "stuck_retry_interval": 0.5}}}
pytestmark = THREADS_DIE


@pytest.mark.parametrize("when", ["begun", "received"])
def test_nothing_of_the_first_round_is_left(
    cloud: Cloud, server: Any, way: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    transfer = CopyWhileRunning._transfer

    def die(step: CopyWhileRunning, run: Run, warm: WarmCopy, copied: CopyRound) -> int:
        monkeypatch.setattr(CopyWhileRunning, "_transfer", transfer)
        if when == "received":
            transfer(step, run, warm, copied)
        cloud.admin.compute.delete(f"/servers/{server.id}/migrations/{cloud.migration(server).id}")
        raise ProcessDiedError

    monkeypatch.setattr(CopyWhileRunning, "_transfer", die)
    resize(cloud, server, way)
    until(lambda: cloud.migration(server).status, lambda status: status == "cancelled", "the move to be cancelled")
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.reality(server)["transfers"] == []
    assert cloud.temporary_images() == []
    assert "before" in content(cloud, server)
