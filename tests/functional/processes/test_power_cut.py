"""What a move leaves behind at a power cut: strace sees every sync of a resize with confirm, and in which order they come."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Boots, resizes across cells, writes marks, confirms. A mark is a file that is looked for: strace sees it.
SCRIPT = """
import sys
from pathlib import Path
from causeway.embedded.cloud import EmbeddedCloud
from tests.functional.servers.moves_cloud import Cloud

def mark(name):
    Path(f"/mark-{name}").exists()

embedded = EmbeddedCloud(Path(sys.argv[1]), port=0, cells=2, hosts_per_cell=1)
embedded.start()
try:
    cloud = Cloud(embedded)
    server = cloud.boot()
    mark(f"server-{server.id}")
    cloud.resized(server)
    mark("resized")
    cloud.confirmed(server)
    mark("confirmed")
finally:
    embedded.stop()
"""
SYNCS = "fsync,fdatasync,syncfs"
CALL = re.compile(r"(?P<call>\w+)\((?P<arguments>.*)\)\s+= 0")


def strace(command: list[str], output: Path, **options: object) -> subprocess.CompletedProcess[str]:
    program = ["strace", "-f", "-y", "-s", "300", "-o", str(output)]
    program += ["-e", f"trace={SYNCS},rename,renameat,renameat2,unlink,unlinkat,rmdir,stat,newfstatat"]
    return subprocess.run(
        [*program, *command],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        **options,  # type: ignore[call-overload]
    )


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The calls between the boot and the end of the confirm, in their order, and the server's id first."""
    directory = tmp_path_factory.mktemp("strace")
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (scripts/install-packages.sh installs it)")
    if strace(["true"], directory / "probe").returncode:
        pytest.skip("processes may not be traced here (ptrace)")
    root = Path(__file__).parents[3]
    paths = os.pathsep.join([str(root / "src"), str(root)])
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(directory / "cloud")]
    ended = strace(command, directory / "trace", env={**os.environ, "PYTHONPATH": paths})
    assert ended.returncode == 0, ended.stderr[-3000:]
    lines = (directory / "trace").read_text(errors="replace").splitlines()
    begin = next(number for number, line in enumerate(lines) if "/mark-server-" in line)
    end = next(number for number, line in enumerate(lines) if "/mark-confirmed" in line)
    server = re.search(r"/mark-server-([0-9a-f-]{36})", lines[begin])
    assert server is not None
    return [server[1], *lines[begin : end + 1]]


def where(trace: list[str], pattern: str, after: int = 0) -> int:
    """The number of the first line that matches."""
    for number, line in enumerate(trace[1:], 1):
        if number > after and re.search(pattern, line):
            return number
    raise AssertionError(f"nothing matches {pattern}")


def test_a_resize_with_confirm_syncs_what_it_writes(trace: list[str]) -> None:
    synced = [line for line in trace[1:] if re.search(r"(fsync|fdatasync|syncfs)\(", line)]
    by_kind = {
        "journal": r"api\.sqlite-wal",
        "cells": r"cell[12]\.sqlite-wal",
        "placement": r"placement\.sqlite-wal",
        "offer": r"offers/",
        "disk": r"instances/[0-9a-f-]{36}/\.disk\.",
        "guest": r"guests/\.[0-9a-f-]{36}\.json",
        "orders": r"moves/\.[0-9a-f-]{36}\.json",
        "folders": r"hosts/[^/]+/instances>",
    }
    missing = [kind for kind, pattern in by_kind.items() if not any(re.search(pattern, line) for line in synced)]
    assert missing == []
    # A journal that syncs for each step, not for each statement.
    assert 20 < len(synced) < 400, len(synced)


def test_the_received_disk_is_synced_before_its_outcome_is_recorded(trace: list[str]) -> None:
    server = trace[0]
    # The last changes are synced with the copy to which they are added, before that is noted.
    received = where(trace, r"fsync\(.*cell2-host1/copies/[^/]+/\.state\.json")
    received = where(trace, r"fsync\(.*cell2-host1/copies/[^/]+/disk>", received)
    noted = where(trace, r"fsync\(.*cell2-host1/copies/[^/]+/\.state\.json", received)
    disk = where(trace, rf"fsync\(.*cell2-host1/instances/{server}/\.disk\.", noted)
    named = where(trace, rf"rename.*cell2-host1/instances/{server}/disk\"", disk)
    folder = where(trace, rf"fsync\(.*cell2-host1/instances/{server}>", named)
    outcome = where(trace, r"fsync\(.*cell2-host1/moves/\.", folder)
    where(trace, r"f(data)?sync\(.*api\.sqlite-wal", outcome)


def test_the_confirms_pivot_is_synced_before_the_sources_disks_go(trace: list[str]) -> None:
    server = trace[0]
    resized = where(trace, "/mark-resized")
    gone = where(trace, rf"(unlink|unlinkat|rmdir)\(.*(cell1-host1/instances/)?{server}_resize", resized)
    pivots = [
        number
        for number, line in enumerate(trace[1:], 1)
        if resized < number < gone and re.search(r"f(data)?sync\(.*api\.sqlite-wal", line)
    ]
    assert pivots, "the source's disks go before anything of the confirm is on the disk"
    # And that they are gone outlives a power cut, too.
    where(trace, r"fsync\(.*cell1-host1/instances>", gone)
