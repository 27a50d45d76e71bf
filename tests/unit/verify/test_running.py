"""Parts are run, what came of them is kept, and what passed is not run again until the project changes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from click.testing import CliRunner, Result

from verify import __main__ as program
from verify import lanes, outcomes, reading, running
from verify.parts import RESULT, Part

PASSES = "import pathlib, sys; pathlib.Path(sys.argv[1]).open('a').write('x')"
HERE = outcomes.Checkout("state", "commit", changed=False)
FAILS = "import sys; print('the reason'); sys.exit(3)"
HANGS = "import threading; print('waits', flush=True); threading.Event().wait()"


Verify = Callable[..., Result]


def part(name: str, code: str, *arguments: str, minutes: float = 1.0) -> Part:
    return Part("some", name, f"does {name}", (sys.executable, "-c", code, *arguments), minutes)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of its own, whose parts are the test's."""
    root = tmp_path / "project"
    (root / "docs").mkdir(parents=True)
    (root / "code.py").write_text("")
    for command in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first"),
    ):
        subprocess.run(["git", *command], cwd=root, check=True, timeout=60)
    for name, value in (("FOLDER", tmp_path / "kept"), ("SUMMARY", root / "docs/verified.md")):
        monkeypatch.setattr(program, name, value)
    monkeypatch.setattr(program, "LAST", root / "docs/verified.json")
    monkeypatch.setattr(program, "checkout", lambda: outcomes.checkout(root))
    return root


@pytest.fixture
def verify(project: Path, monkeypatch: pytest.MonkeyPatch) -> Verify:  # noqa: ARG001 - it is verified
    def call(*parts: Part, arguments: tuple[str, ...] = ()) -> Result:
        monkeypatch.setattr(program, "PARTS", parts)
        monkeypatch.setattr(
            program, "chosen", lambda names: [each for each in parts if not names or each.title in names]
        )
        return CliRunner().invoke(program.main, arguments)

    return call


def test_all_of_it_passes(verify: Verify, project: Path, tmp_path: Path) -> None:
    result = verify(part("good", PASSES, str(tmp_path / "ran")))
    assert result.exit_code == 0, result.output
    assert "Everything passed." in (project / "docs/verified.md").read_text()
    assert json.loads((project / "docs/verified.json").read_text())["passed"] is True


def test_one_that_fails_fails_all_and_its_output_is_kept(verify: Verify, project: Path, tmp_path: Path) -> None:
    result = verify(part("bad", FAILS), part("good", PASSES, str(tmp_path / "ran")))
    assert result.exit_code == 1
    assert (tmp_path / "ran").exists(), "the parts behind it are run"
    (log,) = (tmp_path / "kept").rglob("some-bad.log")
    assert "the reason" in log.read_text()
    assert "**Not passed: some/bad.** 2 of 2 parts" in (project / "docs/verified.md").read_text()


def test_a_part_that_needs_what_is_not_here_says_so_and_fails_nothing(verify: Verify, project: Path) -> None:
    lacking = part("lacking", "import sys; print('no such thing here'); sys.exit(77)")
    result = verify(lacking, part("good", "pass"))
    assert result.exit_code == 0, result.output
    assert "no such thing here" in result.output
    page = (project / "docs/verified.md").read_text()
    assert "| some/lacking | not run |" in page
    assert "Everything passed. Not run: some/lacking, because no such thing here." in page
    assert "1 parts" in verify(lacking, part("good", "pass")).output, "it is tried again"


@pytest.mark.parametrize(
    ("resumes", "arguments", "kept"), [(True, (), "xx"), (False, (), "x"), (True, ("--again",), "x")]
)
def test_a_part_that_can_continue_finds_its_result(
    verify: Verify, tmp_path: Path, *, resumes: bool, arguments: tuple[str, ...], kept: str
) -> None:
    """The first run fails, after it has written a part of its result."""
    code = f"{PASSES}; sys.exit(pathlib.Path(sys.argv[1]).read_text() != 'xx')"
    one = replace(part("half", code, RESULT), resumes=resumes)
    assert verify(one).exit_code == 1
    verify(one, arguments=arguments)
    (result,) = (tmp_path / "kept").rglob("some-half.result")
    assert result.read_text() == kept


def test_a_run_of_parts_continues_where_the_last_one_stopped(verify: Verify, project: Path, tmp_path: Path) -> None:
    good, ran = part("good", PASSES, str(tmp_path / "ran")), tmp_path / "ran"
    verify(good, part("bad", FAILS))
    verify(good, part("bad", PASSES, str(tmp_path / "fixed")))
    assert ran.read_text() == "x", "what passed is not run again"
    assert (tmp_path / "fixed").exists(), "what failed is"
    verify(good, arguments=("--again",))
    assert ran.read_text() == "xx"
    (project / "code.py").write_text("changed")
    verify(good)
    assert ran.read_text() == "xxx", "another state of the project was not verified"
    (project / "docs/verified.md").write_text("its own page")
    verify(good)
    assert ran.read_text() == "xxx", "the page itself is no change"


def test_ctrl_c_leaves_what_had_ended_in_the_report(
    verify: Verify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works, report = lanes.run, tmp_path / "report.json"

    def interrupted(batch: lanes.Lanes, run_part: Callable[[Part, Event], None]) -> None:
        works(batch, run_part)
        raise KeyboardInterrupt

    monkeypatch.setattr(lanes, "run", interrupted)
    result = verify(part("good", PASSES, str(tmp_path / "ran")), arguments=("--json", str(report)))
    assert "interrupted; the next run continues here" in result.output
    assert [each["part"] for each in json.loads(report.read_text())["outcomes"]] == ["some/good"]


def test_a_run_of_some_does_not_write_the_page(verify: Verify, project: Path, tmp_path: Path) -> None:
    good = part("good", PASSES, str(tmp_path / "ran"))
    assert verify(good, part("bad", FAILS), arguments=("some/good",)).exit_code == 0
    assert not (project / "docs/verified.md").exists()


def test_a_run_of_some_that_is_recorded_says_what_is_missing(verify: Verify, project: Path, tmp_path: Path) -> None:
    good = part("good", PASSES, str(tmp_path / "ran"))
    assert verify(good, part("bad", FAILS), arguments=("some/good", "--record")).exit_code == 1
    assert "| some/bad | not run |" in (project / "docs/verified.md").read_text()
    assert "What was run passed: 1 of 2 parts." in (project / "docs/verified.md").read_text()


def test_an_older_outcome_stands_with_its_commit(verify: Verify, project: Path, tmp_path: Path) -> None:
    good, better = part("good", PASSES, str(tmp_path / "ran")), part("better", PASSES, str(tmp_path / "ran, too"))
    verify(good, better)
    (project / "code.py").write_text("changed")
    assert verify(good, better, arguments=("some/good", "--record")).exit_code == 1, (
        "the other one was not run in this state"
    )
    page = (project / "docs/verified.md").read_text()
    assert "| some/good | passed |" in page and "| some/better | passed at " in page


def test_what_an_earlier_form_of_the_program_kept_is_passed_over(tmp_path: Path) -> None:
    kept = outcomes.Kept(tmp_path, HERE)
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier/some-part.json").write_text('{"part": "some/part", "counts": {}}')
    assert kept.latest("some/part") is None


def test_one_that_hangs_is_ended_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LOOK", 0.05)
    kept = outcomes.Kept(tmp_path, HERE)
    outcome = running.run(part("slow", HANGS, minutes=0.001), kept, print, Event())
    assert outcome.status == "timed out"
    assert kept.load("some/slow") == outcome


def test_an_interrupted_part_is_ended_and_its_outcome_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LOOK", 0.05)
    kept, interrupted = outcomes.Kept(tmp_path, HERE), Event()

    def interrupt(line: str) -> None:
        if line == "waits":
            interrupted.set()

    assert running.run(part("slow", HANGS), kept, interrupt, interrupted).status == "interrupted"
    outcome = kept.load("some/slow")
    assert outcome is not None and outcome.status == "interrupted"


def test_an_interrupted_part_ends_at_once_though_ctrl_c_was_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "LOOK", 0.05)
    interrupted = Event()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        outcome = running.run(
            part("slow", HANGS),
            outcomes.Kept(tmp_path, HERE),
            lambda line: interrupted.set() if line == "waits" else None,
            interrupted,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert outcome.exit_status not in (-signal.SIGTERM, -signal.SIGKILL)


def test_counts_come_from_what_pytest_wrote(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "def test_passes(): pass\n"
        "def test_fails(): assert False\n"
        "def test_is_skipped(): pytest.skip('no such part here')\n"
    )
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null")
    what = Part("some", "tests", "", (*command, "--junitxml={result}", str(tmp_path)), 1, reading.junit)
    outcome = running.run(what, outcomes.Kept(tmp_path / "kept", HERE), print, Event())
    assert outcome.status == "failed"
    assert outcome.counts.passed == 1
    assert [name.rpartition("::")[2] for name in outcome.counts.failed] == ["test_fails"]
    assert outcome.counts.skipped == {"no such part here": 1}
