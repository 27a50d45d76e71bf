"""Fault points: what the file can say, and that it happens."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from causeway import errors
from causeway.cli.main import cli
from causeway.faults import injector
from causeway.faults.injector import CRASH_STATUS, parse
from causeway.faults.points import every_point
from causeway.moves.recipes import RESIZE


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    injector.install(tmp_path / "faults.yaml")
    yield tmp_path / "faults.yaml"
    injector.uninstall()


def test_the_command_line_lists_every_point_one_a_line() -> None:
    lines = CliRunner().invoke(cli, ["faults", "list"]).output.splitlines()
    assert lines == every_point()
    assert len(set(lines)) == len(lines)


def test_every_step_has_points_and_those_before_the_pivot_can_be_hit_on_the_way_back() -> None:
    points = set(every_point())
    for step in RESIZE.steps[1:]:
        assert {f"resize.{step.name}.do.{side}" for side in ("before", "after")} <= points
    assert "resize.TargetDBSetup.undo.before" in points
    assert "resize.ShowTarget.undo.before" not in points


def test_nothing_happens_and_nothing_is_read_unless_it_is_enabled(tmp_path: Path) -> None:
    (tmp_path / "faults.yaml").write_text("somewhere: error")
    injector.reach("somewhere")
    assert list(tmp_path.iterdir()) == [tmp_path / "faults.yaml"]


def test_a_point_fails_as_often_as_its_rule_says(file: Path) -> None:
    file.write_text("somewhere: {error: true, times: 2}")
    for _ in range(2):
        with pytest.raises(errors.OperationFailed):
            injector.reach("somewhere")
    injector.reach("somewhere")


def test_a_point_that_refuses_says_that_another_try_would_fail_too(file: Path) -> None:
    file.write_text("somewhere: {refuse: true, times: 1}")
    with pytest.raises(errors.ServiceRefused):
        injector.reach("somewhere")
    injector.reach("somewhere")


def test_the_file_is_read_again_when_it_changed(file: Path) -> None:
    injector.reach("somewhere")
    file.write_text("somewhere: error")
    with pytest.raises(errors.OperationFailed):
        injector.reach("somewhere")
    file.unlink()
    injector.reach("somewhere")


def test_a_fault_can_be_for_one_host(file: Path) -> None:
    file.write_text("somewhere: {error: true, host: here}")
    with injector.scope(host="there"):
        injector.reach("somewhere")
    with injector.scope(host="here"), pytest.raises(errors.OperationFailed):
        injector.reach("somewhere")


def test_a_delay_takes_its_time(file: Path) -> None:
    file.write_text("somewhere: {delay: 0.2}")
    began = time.monotonic()
    injector.reach("somewhere")
    assert time.monotonic() - began >= 0.2


def test_a_move_hangs_for_as_long_as_it_is_at_the_point(file: Path) -> None:
    file.write_text("somewhere: {hang: 0.1}")
    seen: list[bool] = []
    with injector.scope(operation_id="move"):
        assert injector._active is not None
        wait = injector._active._stopping.wait

        def look_and_wait(timeout: float | None = None) -> bool:
            seen.append(injector.is_hanging("move"))
            return wait(timeout)

        injector._active._stopping.wait = look_and_wait  # type: ignore[method-assign]
        injector.reach("somewhere")
    assert seen == [True]
    assert not injector.is_hanging("move")


def test_a_crash_ends_the_process_and_is_not_repeated_after_its_restart(tmp_path: Path) -> None:
    (tmp_path / "faults.yaml").write_text("somewhere: {crash: true, times: 1}")
    program = (
        "import sys, pathlib; from causeway.faults import injector;"
        " injector.install(pathlib.Path(sys.argv[1])); injector.reach('somewhere'); sys.exit(3)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "faults.yaml")]
    assert subprocess.run(command, timeout=60).returncode == CRASH_STATUS
    assert subprocess.run(command, timeout=60).returncode == 3


@pytest.mark.parametrize(
    "text",
    [
        "- a list",
        "somewhere: explode",
        "somewhere: {error: true, crash: true}",
        "somewhere: {times: 1}",
        "somewhere: {error: true, times: 0}",
        "somewhere: {hang: long}",
        "somewhere: {delay: -1}",
        "somewhere: {error: true, hots: here}",
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


def test_a_file_that_is_not_understood_injects_nothing(file: Path) -> None:
    file.write_text("somewhere: explode")
    injector.reach("somewhere")


def test_a_delay_ends_when_its_rule_is_taken_out_of_the_file(file: Path) -> None:
    file.write_text("somewhere: {delay: 300}")
    slow = threading.Thread(target=injector.reach, args=("somewhere",), name="slow")
    slow.start()
    while not file.with_name("faults.yaml.hits").exists():
        slow.join(0.01)
    assert slow.is_alive()
    file.unlink()
    slow.join(10)
    assert not slow.is_alive()
