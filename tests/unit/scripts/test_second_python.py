"""Another Python for the unit tests is found (scripts/find-second-python.sh), and never the one that they run on already."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.unit.scripts.loaded import FOLDER


def python(path: Path, minor: int) -> Path:
    """A program that says it is this version of Python."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 3.{minor}\n")
    path.chmod(0o755)
    return path


def found(first: Path, folder: Path, **environment: str) -> str:
    variables = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder), **environment}
    command = [FOLDER / "find-second-python.sh", first]
    return subprocess.run(
        command, env=variables, capture_output=True, text=True, timeout=60, check=False
    ).stdout.strip()


def test_the_newest_other_one_that_is_supported_is_found(tmp_path: Path) -> None:
    first = python(tmp_path / "first", 13)
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    python(tmp_path / "root/versions/3.14.0/bin/python", 14)
    python(tmp_path / "root/versions/3.13.0/bin/python", 13)
    second = python(tmp_path / "root/versions/3.12.1/bin/python", 12)
    assert found(first, tmp_path, PYENV_ROOT=str(tmp_path / "root")) == str(second)
    assert found(python(tmp_path / "first", 12), tmp_path, PYENV_ROOT=str(tmp_path / "root")).endswith(
        "3.13.0/bin/python"
    )


def test_one_that_is_named_is_taken_if_it_is_there(tmp_path: Path) -> None:
    assert found(Path(sys.executable), tmp_path, SECOND_PYTHON=sys.executable) == sys.executable
    assert found(Path(sys.executable), tmp_path, SECOND_PYTHON=str(tmp_path / "missing")) == ""


def test_without_another_one_nothing_is_found(tmp_path: Path) -> None:
    first = python(tmp_path / "first", 11)
    # Debian's own is python3.11 too.
    assert found(first, tmp_path, PATH=f"{tmp_path}:{os.defpath}") in ("", *_others_of_the_system())


def _others_of_the_system() -> list[str]:
    return [f"python3.{minor}" for minor in (12, 13)]
