"""Nothing of Eventlet runs: libraries that could wait by it wait by threads."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In a process of its own, because the first import decides. As if it were not installed: requirements/ leaves it out.
PROGRAM = """
import sys
sys.modules["eventlet"] = None
import {module}
import oslo_messaging, os_brick.initiator.connector, os_vif
from oslo_service import backend, loopingcall
assert backend.get_backend_type() is backend.BackendType.THREADING, backend.get_backend_type()
"""


@pytest.mark.parametrize("module", ["causeway.cli.compute", "causeway.cli.conductor", "causeway.virt.libvirt.driver"])
def test_libraries_wait_by_threads(module: str) -> None:
    pytest.importorskip("os_brick")
    program = PROGRAM.format(module=module)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
