"""docs/draining.md, typed as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
DOCUMENT = Path(__file__).parents[3] / "docs" / "draining.md"
PATIENCE = 500


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Somebody's home, with the cloud that the document begins with."""
    environment = os.environ | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / ".local" / "share")}
    command = [str(BIN / "causeway"), "up", "--hosts-per-cell", "2", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as cloud:
        try:
            assert cloud.stdout is not None
            assert cloud.stdout.readline().startswith("ready: ")
            yield tmp_path
        finally:
            cloud.terminate()


@pytest.mark.timeout(PATIENCE)
def test_a_cell_is_emptied_as_it_is_written(home: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    script = home / "typed.sh"
    script.write_text("set -eux\n" + "\n".join(blocks))
    environment = os.environ | {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "COLUMNS": "200",
    }
    done = subprocess.run(
        ["bash", str(script)], cwd=home, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lack the aggregate property gen=1" in done.stdout
    assert "asked to wait until" in done.stdout
    assert "Cell cell1 is deleted." in done.stdout
    left, _, listed = done.stdout.partition("Cell cell1 is deleted.")
    assert "| cell2 " in listed and "| cell1 " not in listed
    servers = re.findall(r"^\| (web|database|archive|billing) +\| (\w+) +\| (\S+)", left, re.MULTILINE)
    assert sorted(servers)[-4:] and all(host.startswith("cell2") for _name, _status, host in servers)
    assert {(name, status) for name, status, _host in servers} == {
        ("web", "ACTIVE"),
        ("database", "ACTIVE"),
        ("archive", "SHUTOFF"),
        ("billing", "ACTIVE"),
    }
    assert "<svg" in (home / "report.html").read_text()
