"""A power cut in the middle of moves, and the tool that makes it; ``make faults`` runs all of it. See `clouds.unsynced`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.clouds import unsynced
from tests.faults.clouds.power_site import PowerSite
from tests.faults.clouds.site import LocalSite, until
from tests.faults.moves.flows import FLOWS
from tests.faults.moves.matrix import points_of, run, sample

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(shutil.which("strace") is None, reason="there is no strace"),
]
# Another number takes other points.
SEED = 5
WRITES = """
import os, sys
from pathlib import Path
from causeway import durable

folder = Path(sys.argv[1])
(folder / "unsynced").write_bytes(b"x")
with (folder / "unnamed").open("wb") as file:
    file.write(b"x")
    file.flush()
    os.fsync(file.fileno())
(folder / "old").rename(folder / "new")
(folder / "made").mkdir()
durable.write(folder / "made" / "record", b"x")
durable.make_folder(folder / "kept")
durable.write(folder / "kept" / "record", b"x")
os.mkdir(folder / "last")
(folder / "last" / "file").write_bytes(b"x")
os.kill(os.getpid(), 9)
"""


@pytest.mark.long
def test_what_was_not_synced_is_gone_and_all_else_is_there(tmp_path: Path) -> None:
    folder, log = tmp_path / "folder", tmp_path / "log"
    folder.mkdir()
    (folder / "old").write_bytes(b"y")
    trace = unsynced.Trace.of(folder)
    killed = subprocess.run(unsynced.command(log, [sys.executable, "-c", WRITES, str(folder)]), timeout=60)
    assert killed.returncode == -9
    assert until(lambda: "killed by SIGKILL" in log.read_text(), bool)
    trace.read(log)
    trace.cut()
    left = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    # The folder was synced when "kept" was made in it: with the names that it had then.
    assert left == {"unsynced": b"", "unnamed": b"x", "new": b"y", "made/record": b"x", "kept/record": b"x"}
    assert not (folder / "last").exists()


@pytest.fixture(scope="module")
def power_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PowerSite]:
    with PowerSite(Path(tmp_path_factory.mktemp("power")) / "state") as site:
        assert isinstance(site, PowerSite)
        yield site


@pytest.mark.long
@pytest.mark.parametrize("name", ["cross resize image", "same revert image"])
def test_a_power_cut_costs_nothing_that_was_answered_for(
    power_site: PowerSite, local_site: LocalSite, name: str
) -> None:
    (flow,) = [flow for flow in FLOWS if flow.name == name]
    cases = run(power_site, "power-cut", sample({flow: points_of(local_site, flow)}, 6, SEED), lambda _case: None)
    bad = [case for case in cases if case.outcome != "recovered"]
    assert not bad, "\n".join(map(str, bad))
