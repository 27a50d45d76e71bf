"""A cloud in a process of its own that loses what it had not synced when it is killed."""

from __future__ import annotations

from pathlib import Path

from tests.faults.clouds import unsynced
from tests.faults.clouds.site import ChildSite, until


class PowerSite(ChildSite):
    """In a process of its own; what is killed loses what it had not synced. Needs strace. See `unsynced`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory.resolve())
        self.taken: list[str] = []

    def _run_as(self, command: list[str]) -> list[str]:
        self._log = self.state.path.with_name(f"{self.state.path.name}.strace")
        self._trace = unsynced.Trace.of(self.state.path)
        return unsynced.command(self._log, command)

    def kill(self) -> None:
        """As the power cord does: what was not synced is gone."""
        pid = str(self.process.pid)
        super().kill()
        until(lambda: _last_line(self._log), lambda line: line.startswith(f"{pid} ") and "killed by SIGKILL" in line)
        self._trace.read(self._log)
        # Connections of this process would continue with what SQLite shared before.
        self.cells.close()
        self.api.close()
        self.taken = self._trace.cut()

    def stop(self) -> None:
        super().stop()
        self._log.unlink(missing_ok=True)


def _last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        lines = file.read().decode(errors="replace").splitlines()
    return lines[-1] if lines else ""
