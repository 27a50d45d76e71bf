"""A process that `make coverage` measures ends, although threads end in it at the same time (scripts/keep_greenlets.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.unit.scripts.loaded import FOLDER

# Without the plugin it never ended, in 8 of 8 runs.
THREADS_END = """
import threading

def nothing():
    pass

def end_threads():
    for _ in range(150):
        thread = threading.Thread(target=nothing)
        thread.start()
        thread.join()

ending = [threading.Thread(target=end_threads) for _ in range(4)]
for thread in ending:
    thread.start()
while any(thread.is_alive() for thread in ending):
    nothing()
"""


def test_threads_that_end_at_the_same_time_do_not_hang_a_measured_process(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(THREADS_END)
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), "COVERAGE_FILE": str(tmp_path / "data")}
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={FOLDER.parent / 'pyproject.toml'}", str(program)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
