"""Runs of the functional suite by URL, each in a process of its own, and what became of them.

``python -m tests.functional.processes.suite_runs`` runs it on devcloud; ``--help`` says what can be chosen.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.functional.processes.rabbit import rabbit
from tests.functional.processes.suite_cloud import SuiteDeployment
from tests.functional.processes.suite_shapes import SHAPES, Shape
from tests.functional.servers.deployed_cloud import NEEDS
from tests.of_one_process import COUNTED, SUITE

ROOT = Path(__file__).parents[3]
# Seconds for one test.
PATIENCE = 600
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
    cloud than the earlier ones. ``report`` gets a line for each when it is done."""
    outcomes, left = Outcomes(), list(tests or SUITE)
    for shape in shapes:
        if not left:
            break
        with start(shape) as cloud:
            outcome = run_suite(cloud, *left)
        outcomes.add(shape.name, outcome)
        report(f"{shape.name}: {outcome}")
        left = outcomes.wanting
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
def on_devcloud(directory: Path, queue: str, shape: Shape) -> Iterator[Path]:
    """The cloud.yaml of a cloud of this shape with devcloud around. ``queue``: the URL of a RabbitMQ."""
    where = directory / shape.name.replace(" ", "-")
    where.mkdir(parents=True)
    cloud = SuiteDeployment(where, queue, **shape.arguments())
    try:
        cloud.start()
        yield where / "cloud.yaml"
    finally:
        cloud.stop()


def as_lines(outcomes: Outcomes) -> str:
    """For `verify.reading.suites`: a JSON object for each cloud with what ran there, and one with what ran nowhere."""
    found: list[dict[str, Any]] = [
        {"suite": shape, "passed": len(each.passed), "failed": sorted(each.failed), "skipped": {}, "excluded": {}}
        for shape, each in outcomes.of_shapes.items()
    ]
    skipped, excluded = dict(Counter(outcomes.skipped.values())), dict(outcomes.of_one_process)
    found.append({"suite": "nowhere", "passed": 0, "failed": [], "skipped": skipped, "excluded": excluded})
    return "".join(json.dumps(each) + "\n" for each in found)


def main() -> int:
    parser = argparse.ArgumentParser(description="The functional suite by URL, on processes with devcloud around.")
    parser.add_argument(
        "--shape", action="append", choices=[shape.name for shape in SHAPES], help="only clouds of this one"
    )
    parser.add_argument("--keep", type=Path, help="a new folder for what the clouds write; else it is deleted")
    parser.add_argument("--json", type=Path, help="a file for the outcome")
    parser.add_argument("tests", nargs="*", help="as pytest takes them; the suite if there are none")
    given = parser.parse_args()
    with ExitStack() as stack:
        directory = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="causeway-suite-")))
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        queue = stack.enter_context(rabbit(directory / "rabbit"))
        outcomes = run_shapes(
            lambda shape: on_devcloud(directory, queue, shape),
            *given.tests,
            shapes=[shape for shape in SHAPES if not given.shape or shape.name in given.shape],
            report=lambda line: print(line, flush=True),
        )
    print(outcomes)
    if given.json is not None:
        given.json.write_text(as_lines(outcomes))
    return 1 if outcomes.failed else 0


if __name__ == "__main__":
    sys.exit(main())
