"""The whole demonstration on real guests, as ``make demo`` runs it where it can."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from causeway.virt.lab.hosts import missing

REASON = missing()


@pytest.mark.libvirt
@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.timeout(900)
def test_every_check_of_the_demonstration_holds_on_real_guests(tmp_path: Path) -> None:
    reported = subprocess.run(
        [sys.executable, "-m", "causeway.cli.demo", "--driver", "libvirt", "--state-dir", str(tmp_path / "cloud")],
        capture_output=True,
        text=True,
    )

    # What did not hold comes first: long output may be cut.
    failed = [line for line in reported.stdout.splitlines() if "✗" in line]
    assert reported.returncode == 0, "\n".join([*failed, reported.stdout, reported.stderr])
    assert failed == []
    assert reported.stdout.count("it answers ping on") == 11
    assert "two QEMU hosts in each" in reported.stdout
    assert "outside it was silent for" in reported.stdout
    assert "its guest is the same boot, which continued" in reported.stdout
    assert "Seen from outside" in reported.stdout
    assert "it got its name and its user data from the metadata service" in reported.stdout
    assert "it boots from its own disk, with all that was on it" in reported.stdout
    for recipe in ("live_migration", "near_live_migration"):
        assert f": {recipe}" in reported.stdout
