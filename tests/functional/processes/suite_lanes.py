"""Lanes of the functional suite by URL: each runs a share of the tests on clouds of its own, all of them at the same time."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tests.of_one_process import COUNTED, SUITE

ROOT = Path(__file__).parents[3]
# Seconds to import all modules of tests; a few on a quiet machine.
PATIENCE = 300


@dataclass(frozen=True)
class Collected:
    """``tests`` are those of a cloud, as pytest takes them. ``of_one_process``: why -> how many others there are."""

    tests: list[str]
    of_one_process: Counter[str]


def collect(*tests: str) -> Collected:
    """What pytest finds in tests (none given: the suite) for a cloud that runs elsewhere."""
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    # No test runs, so that nobody reads the file.
    command += ["--cloud", "none", *(tests or SUITE)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return read(done.stdout)


def read(output: str) -> Collected:
    """What pytest printed when it collected."""
    found = [line for line in output.splitlines() if "::" in line and line.startswith("tests/")]
    return Collected(found, Counter({why: int(number) for number, why in COUNTED.findall(output)}))


def deal(tests: Sequence[str], lanes: int) -> list[list[str]]:
    """Shares of tests, about as many for each lane, the same each time. A file's tests stay together: so does what they share."""
    files = [list(of_file) for _file, of_file in groupby(tests, _file_of)]
    shares: list[list[list[str]]] = [[] for _lane in range(lanes)]
    for file in sorted(files, key=len, reverse=True):
        min(shares, key=lambda share: sum(map(len, share))).append(file)
    place = {file: number for number, (file, _tests) in enumerate(groupby(tests, _file_of))}
    return [
        [test for file in sorted(share, key=lambda file: place[_file_of(file[0])]) for test in file] for share in shares
    ]


def _file_of(test: str) -> str:
    return test.partition("::")[0]
