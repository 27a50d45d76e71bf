"""Runs of the functional suite by URL, each in a process of its own, and what became of them.

``python -m tests.functional.processes.suite_runs`` runs it on devcloud; ``--help`` says what can be chosen. Each kind of database
server that is named gets a lane, with a share of the tests (`suite_lanes`).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.functional.processes import suite_lanes
from tests.functional.processes.rabbit import rabbit
from tests.functional.processes.suite_cloud import SuiteDeployment
from tests.functional.processes.suite_lanes import ROOT
from tests.functional.processes.suite_shapes import SHAPES, Shape
from tests.functional.servers.deployed_cloud import NEEDS
from tests.integration.database_servers import database_server
from tests.of_one_process import COUNTED, SUITE

# Seconds for one test.
PATIENCE = 600
# In the reason of a test that needs another number of hosts.
OF_HOSTS = re.compile(r"cells of (\d+) hosts")
# The part of the suite that may be left on all clouds together. With more, something is skipped and nobody notices.
MOST_SKIPPED = 0.1
# Seconds for the suite on one cloud: about two for each test on a quiet machine, ten on a busy one.
PATIENCE_OF_SHAPE = 7200


@dataclass
class Outcome:
    """What became of the suite on one cloud. ``passed``, ``failed`` and ``skipped`` name tests, as pytest takes them.

    ``of_one_process``: why -> how many tests were left out."""

    passed: set[str]
    failed: dict[str, str]
    skipped: dict[str, str]
    of_one_process: Counter[str]
    output: str

    def __str__(self) -> str:
        lines = [f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"]
        lines += [f"{number:5} skipped: {why}" for why, number in Counter(self.skipped.values()).most_common()]
        lines += [f"FAILED {name}: {message}" for name, message in self.failed.items()]
        return "\n".join(lines)


@dataclass
class Outcomes:
    """What became of the suite on several clouds, and of each test in the end. ``skipped``: those that ran on none."""

    of_shapes: dict[str, Outcome] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    of_one_process: Counter[str] = field(default_factory=Counter)

    def add(self, shape: str, outcome: Outcome) -> None:
        self.of_shapes[shape] = outcome
        for test in (*outcome.passed, *outcome.failed):
            self.skipped.pop(test, None)
        self.skipped |= outcome.skipped
        # A later cloud is only asked for tests that are of a cloud.
        self.of_one_process = self.of_one_process or outcome.of_one_process

    @property
    def passed(self) -> int:
        return sum(len(outcome.passed) for outcome in self.of_shapes.values())

    @property
    def failed(self) -> dict[str, str]:
        return {
            test: f"({shape}) {message}"
            for shape, outcome in self.of_shapes.items()
            for test, message in outcome.failed.items()
        }

    @property
    def share_skipped(self) -> float:
        return len(self.skipped) / ((self.passed + len(self.failed) + len(self.skipped)) or 1)

    @property
    def wanting(self) -> list[str]:
        """The tests that were skipped because they need another cloud."""
        return [test for test, reason in self.skipped.items() if reason.startswith(NEEDS)]

    def __str__(self) -> str:
        lines = [
            f"{shape}: {len(each.passed)} passed, {len(each.failed)} failed, {len(each.skipped)} left"
            for shape, each in self.of_shapes.items()
        ]
        lines += [
            f"in all: {self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped;"
            f" {self.of_one_process.total()} more are of one process"
        ]
        lines += [f"{number:5} skipped: {why}" for why, number in Counter(self.skipped.values()).most_common()]
        lines += [f"{number:5} of one process: {why}" for why, number in self.of_one_process.most_common()]
        lines += [f"FAILED {name}: {message}" for name, message in self.failed.items()]
        return "\n".join(lines)


def run_shapes(
    start: Callable[[Shape], AbstractContextManager[Path]],
    *tests: str,
    shapes: Sequence[Shape] = SHAPES,
    report: Callable[[str], None] = lambda _line: None,
) -> Outcomes:
    """Runs tests (none given: the suite) on one cloud after the other.

    ``start`` gives the cloud.yaml of a cloud of a shape; the first runs all tests, each further one those that need another
    cloud than the earlier ones; none is started that has too few or too many hosts for all of them. ``report`` gets a line for
    each when it is done."""
    outcomes, left, hosts = Outcomes(), list(tests or SUITE), dict[str, int]()
    for shape in shapes:
        given = [test for test in left if hosts.get(test, shape.hosts_per_cell) == shape.hosts_per_cell]
        if not given:
            continue
        with start(shape) as cloud:
            outcome = run_suite(cloud, *given)
        outcomes.add(shape.name, outcome)
        report(f"{shape.name}: {outcome}")
        left = outcomes.wanting
        for test, reason in outcome.skipped.items():
            # Hosts are looked at first: who needs something else has as many as it needs.
            number = OF_HOSTS.search(reason)
            hosts[test] = int(number[1]) if number else shape.hosts_per_cell
    return outcomes


def run_suite(cloud: Path, *tests: str, seconds: float = PATIENCE_OF_SHAPE) -> Outcome:
    """Runs tests (none given: the suite) on the cloud that a file describes."""
    return run_tests(cloud.parent, "--cloud", str(cloud), *_in_file(cloud.parent, tests or SUITE), seconds=seconds)


def run_tests(directory: Path, *arguments: str, seconds: float) -> Outcome:
    """Runs tests in a process of their own."""
    report = directory / "suite.xml"
    command = [sys.executable, "-W", "ignore", "-m", "pytest", f"--junitxml={report}", "-q", f"--timeout={PATIENCE}"]
    command += ["-p", "no:cacheprovider", *arguments]
    with (directory / "suite.log").open("w+") as log:
        subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, timeout=seconds, check=False)
        log.seek(0)
        output = log.read()
    assert report.exists(), output[-5000:]
    return read(report, output)


def read(report: Path, output: str) -> Outcome:
    """What is in the JUnit file of a run, and in what it printed."""
    counts = Counter({why: int(number) for number, why in COUNTED.findall(output)})
    outcome = Outcome(set(), {}, {}, counts, output)
    for case in ElementTree.parse(report).iter("testcase"):
        test = _name(case.get("classname") or "", case.get("name") or "")
        broken = [found for kind in ("failure", "error") if (found := case.find(kind)) is not None]
        left = case.find("skipped")
        if broken:
            outcome.failed[test] = (broken[0].get("message") or "")[:300]
        elif left is not None:
            outcome.skipped[test] = left.get("message") or ""
        else:
            outcome.passed.add(test)
    # A test that passed and whose end failed is in the file twice.
    outcome.passed -= set(outcome.failed)
    return outcome


def _name(classname: str, name: str) -> str:
    """The name that pytest takes of a test in a JUnit file: ``tests.unit.test_x.TestY`` -> ``tests/unit/test_x.py::TestY``."""
    found = re.fullmatch(r"((?:\w+\.)*)(test_\w+)((?:\.\w+)*)", classname)
    assert found is not None, classname
    folders, file, classes = found.groups()
    return "::".join([f"{folders.replace('.', '/')}{file}.py", *classes.split(".")[1:], name])


def _in_file(directory: Path, tests: Sequence[str]) -> list[str]:
    """Arguments of pytest that name tests, however many there are."""
    file = directory / "tests.txt"
    file.write_text("\n".join(tests) + "\n")
    return [f"@{file}"]


@contextmanager
def on_devcloud(
    directory: Path, queue: str, shape: Shape, new_database: Callable[[str], str] | None = None
) -> Iterator[Path]:
    """The cloud.yaml of a cloud of this shape with devcloud around. ``queue``: the URL of a RabbitMQ; ``new_database``: see
    `database_server`."""
    word = re.sub(r"\W", "-", shape.name)
    where = directory / word
    where.mkdir(parents=True)
    # The clouds before this one had databases on the same server.
    own = new_database and (lambda name: new_database(f"{word.replace('-', '_').lower()}_{name}"))
    cloud = SuiteDeployment(where, queue, new_database=own, **shape.arguments())
    try:
        cloud.start()
        yield where / "cloud.yaml"
    finally:
        cloud.stop()


@dataclass(frozen=True)
class Lane:
    """Tests that run on clouds of all ``shapes``. ``databases``: the kind of database server, None for SQLite files."""

    directory: Path
    tests: Sequence[str]
    databases: str | None = None
    shapes: Sequence[Shape] = SHAPES

    @property
    def name(self) -> str:
        return self.databases or "sqlite"

    def run(self) -> Outcomes:
        self.directory.mkdir(parents=True)
        with rabbit(self.directory / "rabbit") as queue, _databases(self.databases) as new_database:
            return run_shapes(
                lambda shape: on_devcloud(self.directory, queue, shape, new_database),
                *self.tests,
                shapes=self.shapes,
                report=lambda line: print(f"{self.name}, {line}", flush=True),
            )


@contextmanager
def _databases(kind: str | None) -> Iterator[Callable[[str], str] | None]:
    if kind is None:
        yield None
        return
    with database_server(kind) as new_database:
        yield new_database


def run_lanes(lanes: Sequence[Lane]) -> dict[str, Outcomes]:
    """All at the same time, each in a process of its own.

    :raises EOFError: a lane ended early; it printed why.
    """
    running: list[tuple[Lane, Process, Connection]] = []
    try:
        for lane in lanes:
            receiver, sender = Pipe(duplex=False)
            process = Process(target=_run_lane, args=(lane, sender), name=lane.name)
            process.start()
            # Only the lane has it now: that nothing comes any more is seen when the lane ends.
            sender.close()
            running.append((lane, process, receiver))
        return {lane.name: receiver.recv() for lane, _process, receiver in running}
    finally:
        # Ctrl-C reaches the lanes, too; they end what they started.
        for _lane, process, _receiver in running:
            process.join()


def _run_lane(lane: Lane, sender: Connection) -> None:
    sender.send(lane.run())


def together(lanes: Mapping[str, Outcomes], of_one_process: Counter[str]) -> Outcomes:
    """What became of the suite, shares of which ran in these lanes."""
    found = Outcomes(of_one_process=of_one_process)
    for name, lane in lanes.items():
        found.of_shapes |= {f"{name}, {shape}": outcome for shape, outcome in lane.of_shapes.items()}
        found.skipped |= lane.skipped
    return found


def as_lines(outcomes: Outcomes) -> str:
    """For `verify.reading.suites`: a JSON object for each cloud with what ran there, and one with what ran nowhere."""
    found: list[dict[str, Any]] = [
        {"suite": shape, "passed": len(each.passed), "failed": sorted(each.failed), "skipped": {}, "excluded": {}}
        for shape, each in outcomes.of_shapes.items()
    ]
    skipped, excluded = dict(Counter(outcomes.skipped.values())), dict(outcomes.of_one_process)
    found.append({"suite": "nowhere", "passed": 0, "failed": [], "skipped": skipped, "excluded": excluded})
    return "".join(json.dumps(each) + "\n" for each in found)


def complaint(outcomes: Outcomes, most_skipped: float = MOST_SKIPPED) -> str | None:
    """What is wrong with a run; None if nothing is."""
    if outcomes.failed:
        return f"{len(outcomes.failed)} tests failed"
    if outcomes.share_skipped > most_skipped:
        return f"{outcomes.share_skipped:.1%} of the suite ran on no cloud, more than {most_skipped:.0%}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description="The functional suite by URL, on processes with devcloud around.")
    parser.add_argument(
        "--shape", action="append", choices=[shape.name for shape in SHAPES], help="only clouds of this one"
    )
    parser.add_argument(
        "--databases",
        action="append",
        choices=["mariadb", "postgresql"],
        help="on a server of this kind, not in SQLite files; several run at the same time, with a share of the tests each",
    )
    parser.add_argument(
        "--keep", type=Path, help="a new folder for what the clouds write; else it is kept after failures"
    )
    parser.add_argument("--json", type=Path, help="a file for the outcome")
    parser.add_argument("tests", nargs="*", help="as pytest takes them; the suite if there are none")
    given = parser.parse_args()
    directory = (given.keep or Path(tempfile.mkdtemp(prefix="causeway-suite-"))).resolve()
    shapes = [shape for shape in SHAPES if not given.shape or shape.name in given.shape]
    collected, kinds = suite_lanes.collect(*given.tests), given.databases or [None]
    shares = suite_lanes.deal(collected.tests, len(kinds))
    lanes = [
        Lane(directory / (kind or "sqlite"), share, kind, shapes) for kind, share in zip(kinds, shares, strict=True)
    ]
    try:
        outcomes = together(run_lanes([lane for lane in lanes if lane.tests]), collected.of_one_process)
    except BaseException:
        print(f"What the clouds wrote is in {directory}", flush=True)
        raise
    print(outcomes)
    if given.json is not None:
        given.json.write_text(as_lines(outcomes))
    # Some tests, and some clouds, are no suite.
    wrong = complaint(outcomes, 1.0 if given.tests or given.shape else MOST_SKIPPED)
    if wrong is not None:
        print(f"{wrong}; what the clouds wrote is in {directory}")
    elif given.keep is None:
        shutil.rmtree(directory)
    return 0 if wrong is None else 1


if __name__ == "__main__":
    sys.exit(main())
