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
_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


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
        # What it takes to ask.
        self._own = self.total() - self.total()
        self._total = 0

    def total(self) -> int:
        """Raises CalledProcessError or TimeoutExpired if callgrind does not write down what it counted."""
        command = ["callgrind_control", "--dump", str(os.getpid())]
        subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=True)
        # Each has what was counted since the one before.
        for file in self._files.parent.glob(f"{self._files.name}.*"):
            self._total += sum(int(number) for number in _TOTAL.findall(file.read_text(errors="replace"))[-1:])
            file.unlink()
        self._total += self._own
        return self._total
