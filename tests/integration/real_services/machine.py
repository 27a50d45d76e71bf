"""Processes and files of one deployment of the services, all below one folder."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

VENV = Path(__file__).parents[3] / ".venv-services"
PATIENCE = 120.0
# Seconds that all of them have together. Some of Neutron's agents end only when they are killed.
TO_END = 20.0
# A socket's path has at most 107 bytes: Cinder's helper (oslo.privsep) has its own in a folder of 8 letters below TMPDIR.
LONGEST_SCRATCH = 107 - len("/tmpabcdefgh/privsep.sock")


class Machine:
    """Starts processes, each in a session of its own, and ends them all."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("logs", "etc", "state", "bin", "tmp"):
            (directory / name).mkdir(parents=True, exist_ok=True)

    def write(self, path: str, text: str, *, executable: bool = False) -> Path:
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755 if executable else 0o600)
        return file

    def environment(self, **more: str) -> dict[str, str]:
        path = f"{self.directory}/bin:{VENV}/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
        return {"PATH": path, "HOME": str(self.directory), "PYTHONWARNINGS": "ignore", "LANG": "C.UTF-8", **more}

    def start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        # Neutron's workers elect one of them through a file here: it must be a fresh folder at each start.
        scratch = tempfile.mkdtemp(prefix="", dir=self.directory / "tmp")
        assert len(scratch) <= LONGEST_SCRATCH, f"{scratch} is too long for sockets in it: choose a shorter folder"
        log = self.log_file(name)
        with log.open("ab") as output:
            self._running[name] = subprocess.Popen(
                [str(part) for part in command],
                # By its name PostgreSQL shows whose connection is whose.
                env={**self.environment(), "TMPDIR": scratch, "PGAPPNAME": name, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.directory,
                start_new_session=True,
            )

    def run(self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> str:
        """Raises AssertionError with what it said if it fails."""
        done = subprocess.run(
            [str(part) for part in command],
            env={**self.environment(), **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.directory,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"{command} failed: {(done.stdout + done.stderr)[-3000:]}"
        return done.stdout

    def log_file(self, name: str) -> Path:
        return self.directory / "logs" / f"{name}.log"

    def await_that(self, good: Callable[[], bool], name: str) -> None:
        """Waits until a process of that name serves; other processes have nothing to wait on, so it is asked again and again."""
        end = time.monotonic() + PATIENCE
        while not good():
            process = self._running.get(name)
            log = self.log_file(name)
            said = log.read_text(errors="replace")[-3000:] if log.exists() else ""
            assert process is None or process.poll() is None, f"{name} ended: {said}"
            assert time.monotonic() < end, f"{name} is not ready: {said}"
            time.sleep(0.1)

    def kill(self, name: str) -> None:
        """SIGKILL to a process and its children."""
        process = self._running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)

    def end(self, name: str, seconds: float) -> None:
        """SIGTERM; what has not ended by then is killed, with its children."""
        process = self._running.pop(name)
        _signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        _signal(process, signal.SIGKILL)
        process.wait(10)

    def is_running(self, name: str) -> bool:
        return name in self._running and self._running[name].poll() is None

    def stop(self) -> None:
        """All of them, the last one first; what has not ended in time is killed."""
        for process in reversed(self._running.values()):
            _signal(process, signal.SIGTERM)
        end = time.monotonic() + TO_END
        for process in reversed(self._running.values()):
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, end - time.monotonic()))
            # Children may outlive their leader.
            _signal(process, signal.SIGKILL)
            process.wait(10)
        self._running.clear()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
