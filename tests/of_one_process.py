"""Which tests of the suite are of one process, and therefore no tests of a cloud that runs elsewhere (``--cloud FILE``).

Those are deselected there, not skipped, and counted at the end of the run: "N tests are of one process: why". What is skipped
belongs to the suite by URL and could not run on that cloud.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

# They change or watch the process of the tests; the cloud is in others.
INSIDE = {
    "monkeypatch": "they change code or options of the cloud (monkeypatch)",
    "caplog": "they read what the cloud logs (caplog)",
    "at_point": "they act where the cloud reaches a fault point",
    "dies_at": "threads of the cloud die at fault points",
}
OWN_CLOUD = "they make an embedded cloud of their own, or need none"
# The folders whose tests are of whole clouds.
SUITE = ("tests/functional/servers", "tests/functional/known_bugs")
COUNTED = re.compile(r"^(\d+) tests are of one process: (.*)$", re.MULTILINE)
_COUNTS = pytest.StashKey[Counter[str]]()
_OF_WORKERS = "of_one_process"


def why(item: pytest.Item) -> str | None:
    """Why a test is of one process; None if it is not."""
    marker = item.get_closest_marker("embedded")
    if marker is not None:
        return str(marker.args[0])
    known = getattr(item, "fixturenames", ())
    if "deployed" in known:
        return next((reason for name, reason in INSIDE.items() if name in known), None)
    is_of_suite = any(item.path.is_relative_to(item.config.rootpath / folder) for folder in SUITE)
    return OWN_CLOUD if is_of_suite else None


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes them out of ``items``, and counts them."""
    counts = config.stash[_COUNTS] = Counter()
    kept, gone = [], []
    for item in items:
        reason = why(item)
        if reason is None:
            kept.append(item)
        else:
            gone.append(item)
            counts[reason] += 1
    items[:] = kept
    config.hook.pytest_deselected(items=gone)


def give(session: pytest.Session) -> None:
    """A worker's counts, to the process that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        counts: Counter[str] = session.config.stash.get(_COUNTS, Counter())
        output[_OF_WORKERS] = dict(counts)


def take(node: Any) -> None:
    """The counts of a worker: each has collected all tests."""
    counts = getattr(node, "workeroutput", {}).get(_OF_WORKERS)
    if counts:
        node.config.stash[_COUNTS] = Counter(counts)


def report(reporter: pytest.TerminalReporter) -> None:
    """Prints a line for each reason, as `COUNTED` finds it."""
    counts = reporter.config.stash.get(_COUNTS, Counter[str]())
    for reason, number in counts.most_common():
        reporter.write_line(f"{number} tests are of one process: {reason}")
