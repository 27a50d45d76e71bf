"""Wheels of this checkout, and environments in which they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

from tests.distributions import PYPROJECTS, ROOT, pinned, project

VERSION = project()["version"]
# distribution -> the beginning of its archives' names
NAMES = {name: f"{name.replace('-', '_')}-{VERSION}" for name in PYPROJECTS}
# Seconds for one command.
PATIENCE = 300


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command prints. Fails with all that it said."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment_with(built: Path, folder: Path, *distributions: str, listed: str | None = None) -> Path:
    """The programs of a new environment in which these wheels are installed.

    Their dependencies are all packages of this environment; ``listed``: those that the list of this extra in requirements/ names.
    """
    environment = folder / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=built)
    wheels = [built / f"{NAMES[each]}-py3-none-any.whl" for each in distributions]
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps", *wheels, cwd=built)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=built).strip())
    if listed is None:
        # Files with this ending are only read here, not in the folder that is named: the sources are not found through it.
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        return environment / "bin"
    for name in pinned(ROOT / "requirements" / f"{listed}.txt"):
        files = [
            file for file in metadata.files(name) or () if ".." not in file.parts and "__pycache__" not in file.parts
        ]
        for file in files:
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            (site / file).symlink_to(file.locate())
    return environment / "bin"
