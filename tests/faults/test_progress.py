"""A run of a matrix: one that was broken off is continued from its file; one without a case fails."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tests.faults.cases import Case
from tests.faults.complaints import LOST, Complaint
from tests.faults.progress import Progress
from tests.faults.reporting import Report, Wanted


@dataclass(frozen=True)
class Flow:
    name: str
    group: str = ""


BUILD, SWAP = Flow("build"), Flow("swap")
POINTS = {BUILD: ["first", "second", "third"], SWAP: ["first"]}


def broken_off(file: Path) -> None:
    """One case had recovered, a server of the second one was lost, and the rest had not been run."""
    progress = Progress(file)
    assert progress.begin("crash", POINTS) == POINTS
    progress.add(Case(BUILD, "crash", "first", reached=True, end="forward"))
    progress.add(Case(BUILD, "crash", "second", [Complaint(LOST, "its guest is gone")], reached=True))


def test_what_recovered_is_not_run_again(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    broken_off(file)
    progress = Progress(file)
    progress.resume([BUILD, SWAP])
    assert progress.begin("crash", POINTS) == {BUILD: ["second", "third"], SWAP: ["first"]}
    # Another action has cases of its own.
    assert progress.begin("error", POINTS) == POINTS
    progress.add(Case(BUILD, "crash", "second", reached=True, end="forward"))
    progress.end()
    again = Progress(file)
    again.resume([BUILD, SWAP])
    assert [(case.point, case.end, case.outcome) for case in again.cases] == [
        ("first", "forward", "recovered"),
        ("second", "forward", "recovered"),
    ]
    assert set(again.seconds) == {"crash", "error"}


def test_without_a_file_or_a_wish_to_continue_all_is_run(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    broken_off(file)
    assert Progress(file).begin("crash", POINTS) == POINTS
    for nowhere in (Progress(None), Progress(tmp_path / "other.json")):
        nowhere.resume([BUILD, SWAP])
        assert nowhere.begin("crash", POINTS) == POINTS


def test_a_run_without_a_case_fails() -> None:
    """A wrong name of a flow or a point must not look as if everything had recovered."""
    report = Report(Console(quiet=True), Wanted(("crash",), flow="no such flow"), [BUILD])
    assert report.conclude() == 1
    report.add(Case(BUILD, "crash", "first", reached=True, end="forward"))
    assert report.conclude() == 0
