"""The state directory has one cloud at a time, and a cloud whose policy is broken does not start."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from causeway import errors
from causeway.cli.main import cli
from causeway.embedded.cloud import EmbeddedCloud
from causeway.embedded.lock import StateDirLock

# Seconds within which a cloud has started and ended, on a busy machine.
ENDS = 90.0


def test_a_second_cloud_on_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    first = StateDirLock(tmp_path)
    refused = CliRunner().invoke(cli, ["up", "--state-dir", str(tmp_path), "--port", "0"])
    assert refused.exit_code == 1
    assert f"in use by the process {os.getpid()}" in refused.output
    refused = CliRunner().invoke(cli, ["devcloud", "--state-dir", str(tmp_path), "--port", "0"])
    assert refused.exit_code == 1 and "in use by" in refused.output
    first.release()
    StateDirLock(tmp_path).release()


def test_one_process_can_not_lock_a_directory_twice(tmp_path: Path) -> None:
    first = StateDirLock(tmp_path)
    with pytest.raises(errors.Misconfigured):
        StateDirLock(tmp_path)
    first.release()


def test_a_cloud_whose_policy_is_broken_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text('a: b\n"x": "role:member and"\n')
    refused = CliRunner().invoke(cli, ["up", "--state-dir", str(tmp_path), "--port", "0"])
    assert refused.exit_code == 1
    assert "policy.yaml is broken in line" in refused.output


def test_a_start_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text('a: b\n"x": "role:member and"\n')
    cloud = EmbeddedCloud(tmp_path, port=0)
    with pytest.raises(errors.Misconfigured):
        cloud.start()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", cloud.web.port), timeout=10)
    StateDirLock(tmp_path).release()


@pytest.mark.parametrize("command", ["up", "devcloud"])
def test_a_cloud_whose_output_nobody_reads_ends(tmp_path: Path, command: str) -> None:
    """As in ``causeway up | head -0``: it can't say that it is ready. It used to stay, with threads that served nobody."""
    reads, writes = os.pipe()
    os.close(reads)
    program = [sys.executable, "-W", "ignore", "-c", "from causeway.cli.main import cli; cli()"]
    with (tmp_path / "errors").open("wb") as said:
        cloud = subprocess.Popen(
            [*program, command, "--state-dir", tmp_path / "state", "--port", "0"], stdout=writes, stderr=said
        )
    os.close(writes)
    try:
        assert cloud.wait(ENDS) == 1
    finally:
        cloud.kill()
        cloud.wait()
    StateDirLock(tmp_path / "state").release()
