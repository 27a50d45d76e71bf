"""What a report says, and that docs/verified.md says no other."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from verify import page, report
from verify.outcomes import ROOT, Outcome
from verify.parts import PARTS, chosen
from verify.reading import Counts, coverage, matrix, suites


def made(*outcomes: Outcome, last: dict[str, float] | None = None) -> report.Report:
    return report.Report("state", "abc", False, "2026-11-25T10:00+00:00", "2 cores", list(outcomes), [], last or {})


def outcome(part: str, status: str = "passed", **counts: object) -> Outcome:
    return Outcome(part, "state", "abc", status, 0, "2026-11-25T09:00:00+00:00", 60.0, "some.log", Counts(**counts))  # type: ignore[arg-type]


def test_the_page_in_the_documents_was_written_by_the_program() -> None:
    written, summary = ROOT / "docs/verified.json", ROOT / "docs/verified.md"
    if not written.exists():
        pytest.skip("make verify has not written docs/verified.md yet")
    assert summary.read_text() == report.markdown(report.read(json.loads(written.read_text())))


def test_what_was_written_can_be_read() -> None:
    one = made(
        outcome("test/unit", passed=3, skipped={"why": 1}), outcome("bench/calls", figures={"resize: sql": 60.0})
    )
    assert report.read(json.loads(json.dumps(report.as_dict(one)))) == one


def test_figures_stand_beside_those_of_the_last_report() -> None:
    now = outcome("bench/calls", figures={"resize: sql": 66.0, "resize: rpc": 10.0, "confirm: sql": 5.0})
    found = made(now, last={"bench/calls: resize: sql": 60.0, "bench/calls: resize: rpc": 10.1})
    assert found.changes() == [("bench/calls: resize: sql", 60.0, 66.0)]
    assert "| bench/calls: resize: sql | 60 | 66 |" in report.markdown(found)


def test_what_was_skipped_is_counted_by_reason() -> None:
    found = made(outcome("a/b", skipped={"no KVM": 2}), outcome("c/d", skipped={"no KVM": 1, "no IPv6": 1}))
    assert report.reasons(found, "skipped") == [("no KVM", 3), ("no IPv6", 1)]
    assert report.totals(found.outcomes)["skipped"] == 4


def test_a_part_that_was_not_run_is_no_success() -> None:
    found = made(outcome("a/b"))
    assert found.passed
    found.missing.append("c/d")
    assert not found.passed
    assert ("c/d", "not run", *[""] * 5) in report.rows(found)


def test_the_page_is_well_formed_and_names_what_failed() -> None:
    found = page.page(made(outcome("a/b", "failed", failed=["test_<x>"], figures={"n": 1.0}), last={"a/b: n": 2.0}))
    assert "test_&lt;x&gt;" in found
    pictures = ["<svg" + rest.partition("</svg>")[0] + "</svg>" for rest in found.split("<svg")[1:]]
    assert len(pictures) == 2
    for picture in pictures:
        ElementTree.fromstring(picture)


def test_suites_and_the_matrix_are_counted(tmp_path: Path) -> None:
    (tmp_path / "suites").write_text(
        '{"passed": 2, "failed": ["a"], "skipped": {"why": 1}, "excluded": {}}\n'
        '{"passed": 3, "failed": [], "skipped": {"why": 1}, "excluded": {"no": 4}}\n'
    )
    assert suites(tmp_path / "suites") == Counts(5, ["a"], {"why": 2}, {"no": 4})
    case = {"action": "crash", "flow": "resize", "point": "step.x", "end": "forward"}
    (tmp_path / "matrix").write_text(
        json.dumps({"cases": [case | {"outcome": "recovered"}, case | {"outcome": "lost"}]})
    )
    assert matrix(tmp_path / "matrix") == Counts(1, ["lost crash resize step.x"])


def test_the_percentage_of_lines_is_a_figure(tmp_path: Path) -> None:
    (tmp_path / "coverage").write_text('{"totals": {"percent_covered": 71.26}}')
    assert coverage(tmp_path / "coverage") == Counts(figures={"percent of lines": 71.3})


def test_every_test_is_in_a_part() -> None:
    paths = [ROOT / word for part in PARTS for word in part.command if word.startswith("tests/") and "=" not in word]
    assert [path for path in paths if not path.exists()] == []
    left_out = {
        ROOT / word.partition("=")[2] for part in PARTS for word in part.command if word.startswith("--ignore=")
    }
    for test in (ROOT / "tests").rglob("test_*.py"):
        # A folder's part does not run what is left out below it, which may be another part.
        named = next((path for path in (test, *test.parents) if path in {*paths, *left_out}), None)
        assert named in paths, f"no part runs {test.relative_to(ROOT)}"


def test_parts_are_chosen_by_group_or_name() -> None:
    assert [part.title for part in chosen(("storm", "clients/up"))] == ["storm/storm", "clients/up"]
    assert chosen(()) == list(PARTS)
    with pytest.raises(LookupError, match="nothing"):
        chosen(("nothing",))


def test_minutes_of_parts_that_ran_at_the_same_time_count_once() -> None:
    began = ("2026-01-01T10:00:00+00:00", "2026-01-01T10:01:00+00:00", "2026-01-01T12:00:00+00:00")
    outcomes = [dataclasses.replace(outcome(f"part{number}"), began=at, seconds=120) for number, at in enumerate(began)]
    assert report.rows(made(*outcomes))[-1][-1] == "5.0"
