"""A run whose time is over begins no test, and says so."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.until import OVER


@pytest.mark.parametrize(("until", "outcome"), [(-60.0, "1 skipped"), (600.0, "1 passed")], ids=["over", "not yet"])
def test_no_test_begins_when_the_time_is_over(until: float, outcome: str) -> None:
    one = "tests/unit/suite/test_until.py::test_the_reason_is_said"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-rs",
        "-p",
        "no:cacheprovider",
        "-n",
        "0",
        "--until",
        str(time.time() + until),
        one,
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stdout
    assert outcome in ran.stdout
    assert (OVER in ran.stdout) is ("skipped" in outcome)


def test_the_reason_is_said() -> None:
    assert "time" in OVER
