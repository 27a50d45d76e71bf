"""The wheels, built once for all tests here."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.distributions import ROOT
from tests.integration.packaging.installed import run


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both archives, built of a copy, because a build writes beside the sources."""
    folder = tmp_path_factory.mktemp("package")
    copy = folder / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copytree(ROOT / "distributions", copy / "distributions", symlinks=True)
    shutil.copytree(ROOT / "tests" / "integration" / "packaging", copy / "tests")
    for source in (copy, copy / "distributions/embedded"):
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", source, cwd=folder)
    return folder / "dist"
