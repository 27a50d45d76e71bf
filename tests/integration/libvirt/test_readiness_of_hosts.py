"""A host that could migrate live says so, and another says why not: asked in the host's own network, over its real TLS."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from causeway.virt.lab.hosts import LibvirtEndpoint

ASK = """
import json, sys
from causeway.virt.libvirt.hypervisor_events import EVENT_LOOP
from causeway.virt.libvirt.live.live_readiness import lacks
from causeway.virt.libvirt.live.live_settings import LiveSettings
EVENT_LOOP.acquire()
print(json.dumps(lacks(LiveSettings(sys.argv[1], uri=sys.argv[2]))))
"""


@pytest.mark.parametrize(
    ("port", "pki", "says"),
    [
        (16514, "cell1-host1", None),
        (16999, "cell1-host1", "can't be reached by those of other hosts"),
        # Nobody's certificates.
        (16514, "nobody", "can't be reached by those of other hosts"),
    ],
)
def test_a_host_says_what_it_lacks(
    endpoints: dict[str, LibvirtEndpoint], lab_dir: Path, port: int, pki: str, says: str | None
) -> None:
    host = endpoints["cell1-host1"]
    uri = f"qemu+tls://%s:{port}/system?pkipath={lab_dir}/hosts/{pki}/etc/pki"
    command = ["ip", "netns", "exec", host.netns, sys.executable, "-W", "ignore", "-c", ASK, host.address, uri]
    reported = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert reported.returncode == 0, reported.stderr
    found = json.loads(reported.stdout.splitlines()[-1])
    if says is None:
        assert found == []
    else:
        (said,) = found
        assert says in said and f":{port}/" in said
