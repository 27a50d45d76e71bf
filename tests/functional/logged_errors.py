"""A test fails if Causeway logs at level ERROR: that level means that an operator has to look.

``@pytest.mark.expects_errors(pattern, ...)``: records whose messages contain one of these (regular expressions) are expected.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        # What the `openstack` plug-in says to its user is no log of a service, and no process logs that it was killed.
        if not record.name.startswith("causeway.openstack_plugin.") and not _is_death(record):
            self.records.append(record)


def _is_death(record: logging.LogRecord) -> bool:
    """Whether a thread logged what a test raised in it to end it: no `Exception`."""
    failure = record.exc_info[1] if record.exc_info else None
    return failure is not None and not isinstance(failure, Exception)


@contextmanager
def only_expected(test: pytest.Item) -> Iterator[None]:
    """Fails the test at the end of the block. Embedded clouds run in this process, so that a handler sees what they log."""
    kept, ours = _Kept(), logging.getLogger("causeway")
    ours.addHandler(kept)
    try:
        yield
    finally:
        ours.removeHandler(kept)
    patterns = [pattern for marker in test.iter_markers("expects_errors") for pattern in marker.args]
    shown = logging.Formatter("%(name)s: %(message)s")
    unexpected = [
        shown.format(record)
        for record in kept.records
        if not any(re.search(pattern, record.getMessage()) for pattern in patterns)
    ]
    if unexpected:
        pytest.fail("Logged at level ERROR, which nobody expected:\n" + "\n".join(unexpected), pytrace=False)
