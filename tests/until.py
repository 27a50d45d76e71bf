"""``--until TIME``: a run on a slow machine begins no further test then. Those that are left are reported as skipped."""

from __future__ import annotations

import time

import pytest

OVER = "not run: the time that this run may take was over"


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--until", type=float, metavar="TIME", help="begin no test after this time (seconds since 1970)")


def skip_if_over(config: pytest.Config) -> None:
    """Skips the test that would begin now if the time is over."""
    until = config.getoption("--until")
    if until is not None and time.time() > until:
        pytest.skip(OVER)
