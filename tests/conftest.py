"""For all tests: ``--cloud FILE`` runs the functional suite on a cloud elsewhere (see `deployed_cloud`), ``--databases KIND``
that of the API on other databases (see `server_databases`)."""

from __future__ import annotations

import faulthandler
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from greenlet import _greenlet
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from tests import compiling, limits, of_one_process, quick, until

# Every answer of every API in the tests, those of processes that they start included, is held against its schema.
os.environ.setdefault("OS_API__RESPONSE_VALIDATION", "error")
# No test asserts a time, nor does a property.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
# A thread in which greenlets ran would look through all objects at its end, for what a greenlet may have left: each cloud has
# dozens of such threads, and a tenth of the processor went into that.
_greenlet.enable_optional_cleanup(False)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cloud",
        metavar="FILE",
        default=os.environ.get("CAUSEWAY_TEST_CLOUD"),
        help="cloud.yaml of a running cloud: tests that know an embedded one use it (default: $CAUSEWAY_TEST_CLOUD)",
    )
    parser.addoption(
        "--databases",
        choices=("postgresql", "mariadb"),
        help="run tests/functional/api on databases of this kind, not on SQLite files (see `server_databases`)",
    )
    parser.addoption("--part", choices=("quick", "rest"), help="what `make test` runs, or all else: see tests/quick.py")
    until.add_option(parser)


# Seconds after its time is up until a test that can't be interrupted is ended together with its process.
PATIENCE = 180


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test that hangs where no signal reaches it (in a library, in a cleanup that waits) takes its worker with it, which is
    reported and replaced; so it fails alone, and the run comes to its end."""
    faulthandler.dump_traceback_later(2 * limits.limit_of(item) + PATIENCE, exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    until.skip_if_over(item.config)


class EachFileOnce(LoadFileScheduling):  # type: ignore[misc]
    """A test that took its worker with it has failed: xdist would give it to the next worker, and to the next one."""

    def remove_node(self, node: WorkerController) -> str | None:
        units = self.assigned_work.pop(node)
        ended_by = next((test for unit in units.values() for test, is_done in unit.items() if not is_done), None)
        if ended_by is None:
            return None
        for file, unit in units.items():
            left = {test: is_done for test, is_done in unit.items() if test != ended_by}
            if not all(left.values()):
                self.workqueue[file] = left
        for worker in self.assigned_work:
            self._reschedule(worker)
        return str(ended_by)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> EachFileOnce | None:
    return EachFileOnce(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    part = config.getoption("--part")
    return True if part is not None and quick.is_left_out(part, collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Properties get their limits. With ``--part``, the other part is deselected. With ``--cloud``, tests of one process are
    left out and counted."""
    limits.give(items)
    part = config.getoption("--part")
    if part is not None:
        quick.keep(part, config, items)
    if config.getoption("--cloud") is not None:
        of_one_process.deselect(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """What is collected stays: there is no garbage to look for yet."""
    gc.disable()
    try:
        compiling.compile_share(session.config)
        return (yield)
    finally:
        # Also where others collect: in the process that gives tests to workers.
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Thousands of tests and their modules stay until the end: the garbage collector need not look at them again and again.

    A tenth of the processor went into that, most of it into looks at everything (the third threshold)."""
    gc.freeze()
    gc.set_threshold(7000, 10, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """pytest collects garbage at the end, for warnings of what was never closed, and so does Python: both need not look at all
    that is still in use."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    of_one_process.give(session)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    of_one_process.take(node)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    of_one_process.report(terminalreporter)
