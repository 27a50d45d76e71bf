"""What is made of the functional suite's runs by URL: which tests a further cloud gets, and what is counted in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.functional.processes import suite_runs
from tests.functional.processes.suite_runs import Outcome, Outcomes, complaint, read, run_shapes, together
from tests.functional.processes.suite_shapes import Shape
from tests.of_one_process import SUITE
from verify.reading import suites

NEEDS = "by URL: needs [moves] warm = never, which is auto"
INSIDE = "by URL: reaches into the process of an embedded cloud"


def test_a_junit_file_is_read_with_the_names_that_pytest_takes(tmp_path: Path) -> None:
    file = tmp_path / "suite.xml"
    file.write_text(
        """<testsuites><testsuite>
        <testcase classname="tests.functional.servers.resize.test_same_cell" name="test_works[a-b.c]"/>
        <testcase classname="tests.functional.servers.rescue.test_rescue.TestImages" name="test_breaks">
            <failure message="it broke"/></testcase>
        <testcase classname="tests.unit.test_clock" name="test_left"><skipped message="by URL: needs more"/></testcase>
        <testcase classname="tests.unit.test_clock" name="test_end_fails"/>
        <testcase classname="tests.unit.test_clock" name="test_end_fails"><error message="at the end"/></testcase>
        </testsuite></testsuites>"""
    )
    printed = "...\n2 tests are of one process: looks into hosts, and at calls\n1 tests are of one process: more\n"
    outcome = read(file, printed)
    assert outcome.passed == {"tests/functional/servers/resize/test_same_cell.py::test_works[a-b.c]"}
    assert outcome.failed == {
        "tests/functional/servers/rescue/test_rescue.py::TestImages::test_breaks": "it broke",
        "tests/unit/test_clock.py::test_end_fails": "at the end",
    }
    assert outcome.skipped == {"tests/unit/test_clock.py::test_left": "by URL: needs more"}
    assert outcome.of_one_process == {"looks into hosts, and at calls": 2, "more": 1}


def test_a_further_cloud_gets_what_needs_another_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[tuple[str, tuple[str, ...]]] = []
    outcomes = {
        "first": Outcome({"a"}, {}, {"b": NEEDS, "c": INSIDE, "d": NEEDS, "e": NEEDS}, Counter({"of one": 7}), ""),
        "second": Outcome({"b"}, {"d": "it broke"}, {"e": NEEDS}, Counter(), ""),
    }

    def run_suite(cloud: Path, *tests: str) -> Outcome:
        given.append((cloud.name, tests))
        return outcomes[cloud.name]

    @contextmanager
    def start(shape: Shape) -> Iterator[Path]:
        yield tmp_path / shape.name

    monkeypatch.setattr(suite_runs, "run_suite", run_suite)
    found = run_shapes(start, shapes=[Shape("first"), Shape("second")])
    assert given == [("first", SUITE), ("second", ("b", "d", "e"))]
    assert (found.passed, found.failed, found.skipped) == (2, {"d": "(second) it broke"}, {"c": INSIDE, "e": NEEDS})
    assert found.of_one_process == {"of one": 7}
    written = tmp_path / "suite.json"
    written.write_text(suite_runs.as_lines(found))
    counts = suites(written)
    assert (counts.passed, counts.failed, counts.skipped) == (2, ["d"], {INSIDE: 1, NEEDS: 1})
    assert counts.excluded == {"of one": 7}
    said = str(found).splitlines()
    assert said[:3] == [
        "first: 1 passed, 0 failed, 4 left",
        "second: 1 passed, 1 failed, 1 left",
        "in all: 2 passed, 1 failed, 2 skipped; 7 more are of one process",
    ]


def test_no_cloud_is_started_for_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = []

    @contextmanager
    def start(shape: Shape) -> Iterator[Path]:
        started.append(shape.name)
        yield tmp_path

    monkeypatch.setattr(suite_runs, "run_suite", lambda _cloud, *_tests: Outcome({"a"}, {}, {}, Counter(), ""))
    run_shapes(start, shapes=[Shape("first"), Shape("second")])
    assert started == ["first"]


def test_a_cloud_gets_only_tests_that_want_as_many_hosts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[tuple[str, tuple[str, ...]]] = []

    def run_suite(cloud: Path, *tests: str) -> Outcome:
        given.append((cloud.name, tests))
        left = {"a": NEEDS, "b": "by URL: needs 2 cells of 3 hosts"} if cloud.name == "plain" else {}
        return Outcome(set(tests) if not left else set(), {}, left, Counter(), "")

    @contextmanager
    def start(shape: Shape) -> Iterator[Path]:
        yield tmp_path / shape.name

    monkeypatch.setattr(suite_runs, "run_suite", run_suite)
    shapes = [Shape("plain"), Shape("one", hosts_per_cell=1), Shape("three", hosts_per_cell=3), Shape("late")]
    run_shapes(start, shapes=shapes)
    assert given == [("plain", SUITE), ("three", ("b",)), ("late", ("a",))]


def test_the_outcome_of_a_suite_is_that_of_its_lanes() -> None:
    lanes = {"mariadb": Outcomes(), "postgresql": Outcomes()}
    lanes["mariadb"].add("plain", Outcome({"a", "b"}, {}, {"c": NEEDS}, Counter(), ""))
    lanes["mariadb"].add("late", Outcome({"c"}, {}, {}, Counter(), ""))
    lanes["postgresql"].add("plain", Outcome({"d"}, {"e": "it broke"}, {"f": INSIDE}, Counter(), ""))
    found = together(lanes, Counter({"of one": 7}))
    assert list(found.of_shapes) == ["mariadb, plain", "mariadb, late", "postgresql, plain"]
    assert (found.passed, found.failed) == (4, {"e": "(postgresql, plain) it broke"})
    assert (found.skipped, found.of_one_process) == ({"f": INSIDE}, {"of one": 7})


@pytest.mark.parametrize(
    ("failed", "skipped", "said"),
    [
        ({}, 1, None),
        ({}, 2, "18.2% of the suite ran on no cloud, more than 10%"),
        ({"broken": "why"}, 0, "1 tests failed"),
    ],
    ids=["a tenth skipped", "more skipped", "failed"],
)
def test_a_run_says_what_is_wrong_with_it(failed: dict[str, str], skipped: int, said: str | None) -> None:
    outcomes = Outcomes()
    left = {f"left{number}": NEEDS for number in range(skipped)}
    outcomes.add("plain", Outcome({f"passed{number}" for number in range(9)}, failed, left, Counter(), ""))
    assert complaint(outcomes) == said
