"""The whole demonstration on real guests whose disks are in a real Ceph, as ``make demo STORAGE=ceph`` runs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from causeway.virt.lab.hosts import missing as no_hosts
from tests.integration.real_services import ceph
from tests.integration.real_services.ceph_demo import PER_CELL, SHARED

pytestmark = [pytest.mark.timeout(1800), pytest.mark.libvirt]


@pytest.mark.parametrize("storage", [SHARED, PER_CELL])
def test_every_check_of_the_demonstration_holds_on_disks_in_ceph(storage: str) -> None:
    if reason := no_hosts() or ceph.missing():
        pytest.skip(reason)
    words = [sys.executable, "-W", "ignore", "-m", "tests.integration.real_services.ceph_demo", "--storage", storage]
    reported = subprocess.run(words, capture_output=True, text=True, timeout=1700)

    # What did not hold comes first: long output may be cut.
    failed = [line for line in reported.stdout.splitlines() if "✗" in line]
    assert reported.returncode == 0, "\n".join([*failed, reported.stdout, reported.stderr])
    assert "Disks in shared storage" in reported.stdout
    assert reported.stdout.count("no byte of its disk was sent") >= 2
    assert ("its disk was copied" in reported.stdout) is (storage == PER_CELL)
