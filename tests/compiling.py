"""In a new clone each worker compiles a share of the tests first, and finds the rest compiled by the others.

Otherwise all workers compile all tests, side by side.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from pathlib import Path

import pytest

from tests import quick


def share_of(files: list[Path], worker: int, workers: int) -> list[Path]:
    """The files that a worker compiles: each file is compiled by one of them."""
    return sorted(files)[worker::workers]


def compile_share(config: pytest.Config) -> None:
    """Imports this worker's share of the test files. pytest compiles them when they are imported, and collects them later."""
    given = getattr(config, "workerinput", None)
    if given is None:
        return
    part = config.getoption("--part")
    files = [path for path in (quick.ROOT / "tests").rglob("test_*.py") if not quick.is_left_out(part, path)]
    for path in share_of(files, int(given["workerid"].removeprefix("gw")), int(given["workercount"])):
        # Whatever is wrong with a file, its collection reports it.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(quick.ROOT).with_suffix("").parts))
