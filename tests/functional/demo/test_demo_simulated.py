"""The whole demonstration, as ``make demo`` runs it without root or QEMU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from causeway.virt.lab.hosts import missing


@pytest.mark.skipif(missing() is None, reason="real guests run here: the same is done on them")
# Some forty runs of the openstack client: a second each on a quiet machine, several on a busy one.
@pytest.mark.timeout(600)
def test_every_check_of_the_demonstration_holds_on_simulated_hosts(tmp_path: Path) -> None:
    reported = subprocess.run(
        [sys.executable, "-m", "causeway.cli.demo", "--driver", "simulated", "--state-dir", str(tmp_path / "cloud")],
        capture_output=True,
        text=True,
    )

    assert reported.returncode == 0, reported.stdout + reported.stderr
    assert "✗" not in reported.stdout
    assert "ACTIVE -> RESIZE -> VERIFY_RESIZE" in reported.stdout
    assert "VERIFY_RESIZE -> REVERT_RESIZE -> ACTIVE" in reported.stdout
    assert "status went MIGRATING -> ACTIVE" in reported.stdout
    assert "its guest did not boot" in reported.stdout
    assert "revert_resize" in reported.stdout, "the timeline is missing"
    assert "live_migration" in reported.stdout
    assert not (tmp_path / "cloud" / "demo.pid").exists(), "the cloud was left running"
