"""`causeway metadata` in a process of its own: it needs the API database, and through it those of the cells."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from causeway.metadata.callers import sign
from tests.functional.conftest import Cloud
from tests.ports import free_port

SECRET, TIMEOUT = "of-agent-and-service", 30
COMMAND = [sys.executable, "-W", "ignore", "-c", "from causeway.cli.main import cli; cli()", "metadata"]


def configured(cloud: Cloud, folder: Path, neutron: str) -> list[str]:
    url = cloud.services.api.url.render_as_string(hide_password=False)
    (folder / "causeway.conf").write_text(f"[api_database]\nconnection = {url}\n[neutron]\n{neutron}")
    return [*COMMAND, "--config-file", str(folder / "causeway.conf")]


def test_the_metadata_process_serves_until_it_is_to_end(cloud: Cloud, tmp_path: Path) -> None:
    server, port = cloud.server(cell="cell2", hostname="web"), free_port()
    command = configured(cloud, tmp_path, f"service_metadata_proxy = true\nmetadata_proxy_shared_secret = {SECRET}\n")
    process = subprocess.Popen(
        [*command, "--workers", "2", "--bind", f"127.0.0.1:{port}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready: metadata ")
        headers = {
            "X-Instance-ID": server.uuid,
            "X-Tenant-ID": server.project_id,
            "X-Instance-ID-Signature": sign(SECRET, server.uuid),
        }
        url = f"http://127.0.0.1:{port}/latest/meta-data/hostname"
        assert requests.get(url, headers=headers, timeout=TIMEOUT).text == "web.novalocal"
        assert requests.get(url, headers=headers | {"X-Instance-ID": "x"}, timeout=TIMEOUT).status_code == 403
        password = f"http://127.0.0.1:{port}/openstack/latest/password"
        assert requests.post(password, headers=headers, data=b"Y2lwaGVy", timeout=TIMEOUT).status_code == 200
        assert requests.get(password, headers=headers, timeout=TIMEOUT).text == "Y2lwaGVy"
    finally:
        process.terminate()
        assert process.wait(TIMEOUT) == 0


@pytest.mark.parametrize("neutron", ["service_metadata_proxy = true\n", "service_metadata_proxy = perhaps\n"])
def test_the_metadata_process_says_why_it_does_not_start(cloud: Cloud, tmp_path: Path, neutron: str) -> None:
    done = subprocess.run(configured(cloud, tmp_path, neutron), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "[neutron]" in done.stderr
