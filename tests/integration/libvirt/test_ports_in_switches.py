"""Ports in a real Open vSwitch, of guests that were not made here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.libvirt import switch_of_its_own as program


@pytest.mark.skipif(
    os.geteuid() != 0 or not program.SCHEMA.exists() or shutil.which("ovs-vswitchd") is None,
    reason="no Open vSwitch, or no root: install openvswitch-switch",
)
def test_a_guest_of_nova_has_its_network_after_its_first_start_here(tmp_path: Path) -> None:
    command = ["unshare", "--net", "--mount", sys.executable, "-W", "ignore", "-m", program.__name__, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["before"] == [True, True]
    assert seen["left"], "the port went by itself: this shows nothing"
    assert seen["after"] == [True, True]
    # What is not there costs nothing: the answer comes from what os-vif knows of the database already.
    assert (seen["new"], seen["again"], seen["stale"]) == (1, 0, 2)
