"""Runs what a document has its readers type, as it stands, in a new home with a cloud of ``causeway up``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BIN = Path(sys.executable).parent
PATIENCE = 500


@contextmanager
def cloud_at(home: Path, *options: str) -> Iterator[None]:
    """``causeway up`` with these options, ready, in the default state directory of ``home``; it has ended afterwards."""
    command: list[str | Path] = [BIN / "causeway", "up", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment(home)) as cloud:
        try:
            assert cloud.stdout is not None
            assert cloud.stdout.readline().startswith("ready: ")
            yield
        finally:
            cloud.terminate()


def typed(script: str, home: Path) -> str:
    """What a script prints that is typed at ``home``. Fails at its first command that fails, with all that it said."""
    file = home / "typed.sh"
    file.write_text(f"set -eux\n{script}")
    done = subprocess.run(
        ["bash", file], cwd=home, env=_environment(home), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _environment(home: Path) -> dict[str, str]:
    return os.environ | {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "COLUMNS": "200",
    }
