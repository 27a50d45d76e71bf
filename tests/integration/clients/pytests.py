"""Tests of ours that drive other people's software, run by pytest in a process of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.integration.clients import exclusions
from tests.integration.clients.counts import Counts, of_junit

ROOT = Path(__file__).parents[3]
# Seconds: for all of a module, and for a test.
PATIENCE, PATIENCE_FOR_A_TEST = 3600.0, 300.0


def run(
    python: Path,
    modules: Sequence[Path],
    regex: str,
    environment: Mapping[str, str],
    directory: Path,
    json_file: Path | None,
    fixtures: str | None = None,
) -> int:
    """Runs ``modules`` in this order with the interpreter that has what they import.

    ``regex``: names of tests, as pytest's ``-k`` takes them. ``fixtures``: a module that has what these share.
    """
    return counted(python, modules, regex, environment, directory, fixtures).report(json_file)


def counted(
    python: Path,
    modules: Sequence[Path],
    regex: str,
    environment: Mapping[str, str],
    directory: Path,
    fixtures: str | None = None,
) -> Counts:
    """As `run`, without a report."""
    written = directory / "junit.xml"
    command: list[str | Path] = [
        *(python, "-m", "pytest", "--noconftest", "-c", "/dev/null", "--rootdir", ROOT, "-p", "no:cacheprovider"),
        *("-v", "--tb=short", f"--junitxml={written}", f"--timeout={PATIENCE_FOR_A_TEST:g}"),
        *(("-p", fixtures) if fixtures is not None else ()),
        *modules,
    ]
    excluded: dict[str, str] = {}
    for module in modules:
        of_module = exclusions.of_suite(module.stem)
        excluded |= of_module
        command += [f"--deselect={module.relative_to(ROOT)}::{test}" for test in of_module]
    # The files have no names that pytest looks for: without their software they can't even be imported.
    subprocess.run([*command, *(["-k", regex] if regex else [])], env=environment, cwd=ROOT, timeout=PATIENCE)
    counts = of_junit(written) if written.exists() else Counts(failed={modules[0].stem: "pytest ran nothing"})
    counts.excluded.update(excluded.values())
    return counts
