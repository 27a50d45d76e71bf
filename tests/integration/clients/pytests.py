"""Tests of ours that drive other people's software, run by pytest in a process of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.integration.clients import exclusions
from tests.integration.clients.counts import Counts, of_junit

ROOT = Path(__file__).parents[3]
# Seconds: for all of a module, and for a test.
PATIENCE, PATIENCE_FOR_A_TEST = 3600.0, 300.0


def run(
    python: Path, module: Path, regex: str, environment: Mapping[str, str], directory: Path, json_file: Path | None
) -> int:
    """Runs ``module`` with the interpreter that has what it imports; ``regex``: names of tests, as pytest's ``-k`` takes them."""
    written = directory / "junit.xml"
    command: list[str | Path] = [
        *(python, "-m", "pytest", "--noconftest", "-c", "/dev/null", "--rootdir", ROOT, "-p", "no:cacheprovider"),
        *("-v", "--tb=short", f"--junitxml={written}", f"--timeout={PATIENCE_FOR_A_TEST:g}", module),
    ]
    excluded = exclusions.of_suite(module.stem)
    for test in excluded:
        command += ["--deselect", f"{module.relative_to(ROOT)}::{test}"]
    # The file has no name that pytest looks for: without its software it can't even be imported.
    subprocess.run([*command, *(["-k", regex] if regex else [])], env=environment, cwd=ROOT, timeout=PATIENCE)
    counts = of_junit(written) if written.exists() else Counts(failed={module.stem: "pytest ran nothing"})
    counts.excluded.update(excluded.values())
    return counts.report(json_file)
