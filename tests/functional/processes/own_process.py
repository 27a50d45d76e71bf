"""One process of ours, and how tests wait for what processes do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.process_trees import signal_all, stop

CAUSEWAY = Path(sys.executable).with_name("causeway")
PATIENCE = 90


class Process:
    """One of ours, its output in a file."""

    program = CAUSEWAY

    def __init__(self, directory: Path, name: str, *arguments: str, prefix: Sequence[str] = ()) -> None:
        """``prefix``: what its command begins with, to run it elsewhere."""
        self.name = name
        self._log = directory / f"{name}.log"
        # Of an earlier life, if it is started again.
        self._said_before = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._popen = subprocess.Popen(
                [*prefix, str(self.program), *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def log_of_this_life(self) -> str:
        """Without what earlier processes of the same name wrote."""
        return self._log.read_bytes()[self._said_before :].decode(errors="replace")

    @property
    def pid(self) -> int:
        return self._popen.pid

    def wait_ready(self) -> str:
        """What follows "ready: "; an earlier process of the same name may have said so before."""

        def look() -> str | None:
            assert self._popen.poll() is None, f"{self.name} ended: {self.log[-3000:]}"
            lines = [line for line in self.log_of_this_life.splitlines() if line.startswith("ready: ")]
            return lines[-1].removeprefix("ready: ") if lines else None

        return str(until(look, bool, f"{self.name} to be ready"))

    def kill(self) -> None:
        """SIGKILL: it can do nothing more, nor can what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait(10)

    def terminate(self) -> None:
        """SIGTERM: it is to end by itself."""
        self._popen.terminate()

    def pause(self) -> None:
        """SIGSTOP: from here on none of its threads runs."""
        stop(self.pid)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def freeze(self) -> None:
        """SIGSTOP to it and to what it started, as the workers of an API."""
        signal_all(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        signal_all(self.pid, signal.SIGCONT)

    @property
    def has_ended(self) -> bool:
        return self._popen.poll() is not None

    def wait_ended(self, patience: float = 60) -> int:
        """Its exit status; what does not end is killed."""
        try:
            return self._popen.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


def until(look: Callable[[], Any], good: Callable[[Any], bool], what: str, patience: float = PATIENCE) -> Any:
    """What ``look`` sees when it is good; other processes have nothing to wait on, so this asks again and again."""
    end = time.monotonic() + patience
    while True:
        seen = look()
        if good(seen):
            return seen
        assert time.monotonic() < end, f"waited too long for {what}; last seen: {seen}"
        time.sleep(0.05)
