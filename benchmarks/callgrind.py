"""Instructions as callgrind counts them, where the kernel can't: most virtual machines have no counter.

The benchmarks run once more inside of valgrind, which executes each instruction of the process itself, some fifty times slower.
So instructions repeat within 1 to 3 % however busy the machine is, like those of the kernel. They are more than the kernel's for
the same work: valgrind offers libraries an older processor. Compare them with others of callgrind only.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Where this process has callgrind write what it counted; only set inside of it.
_FILES = "BENCHMARKS_CALLGRIND"
_PATIENCE = 120.0
_TOTAL = re.compile(rb"^totals: (\d+)", re.MULTILINE)
# The total is in the last line; the file has megabytes.
_END = 200


def is_on() -> bool:
    """Whether this process runs inside of callgrind."""
    return _FILES in os.environ


def run(arguments: list[str]) -> int:
    """``python -m benchmarks`` with these arguments inside of callgrind; its exit status."""
    with tempfile.TemporaryDirectory(prefix="callgrind-") as directory:
        files = f"{directory}/counted"
        command = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={files}", "--fair-sched=yes"]
        environment = os.environ | {_FILES: files}
        module = [sys.executable, "-m", "benchmarks", *arguments]
        return subprocess.run([*command, *module], env=environment, check=False).returncode


class Callgrind:
    """Counts what this process executes from when it is made, in all of its threads."""

    def __init__(self) -> None:
        self._files = Path(os.environ[_FILES])
        self._total = self._own = 0
        self.total()
        # What remains of asking: the end of one `total` and the beginning of the next.
        before = self.total()
        self._own = self.total() - before
        self._total = 0

    def total(self) -> int:
        """Raises CalledProcessError or TimeoutExpired if callgrind does not write down what it counted."""
        self._total += self._since_the_last() - self._own
        # What it took to write that down and to read it. Callgrind writes a line for each function that was executed, so this
        # depends on what was done before: it was up to 100 million instructions of the next operation.
        self._since_the_last()
        return self._total

    def _since_the_last(self) -> int:
        command = ["callgrind_control", "--dump", str(os.getpid())]
        subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=True)
        counted = 0
        for file in self._files.parent.glob(f"{self._files.name}.*"):
            with file.open("rb") as opened:
                opened.seek(max(0, file.stat().st_size - _END))
                counted += sum(int(number) for number in _TOTAL.findall(opened.read())[-1:])
            file.unlink()
        return counted
