"""What Horizon and the cloud logged while their pages were opened: no failure that the pages did not show."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

# An answer of 500 or more; an error that a page was to show, or did not; a failure that nobody foresaw.
OF_HORIZON = re.compile(r'HTTP/1\.1" 5\d\d |^ERROR:(horizon\.exceptions|django\.request)|Internal Server Error')
OF_THE_CLOUD = re.compile(r" ERROR | CRITICAL |^Traceback ")


def lines(file: Path, pattern: re.Pattern[str]) -> list[str]:
    return [line for line in file.read_text(errors="replace").splitlines() if pattern.search(line)]


def test_horizon_logged_no_failure() -> None:
    log = Path(os.environ["HORIZON_LOG"])
    assert "/project/instances/" in log.read_text(errors="replace")
    assert lines(log, OF_HORIZON) == []


@pytest.mark.skipif("CLOUD_LOG" not in os.environ, reason="the cloud's services have logs of their own")
def test_the_cloud_logged_no_failure() -> None:
    log = Path(os.environ["CLOUD_LOG"])
    assert " INFO " in log.read_text(errors="replace")
    assert lines(log, OF_THE_CLOUD) == []
