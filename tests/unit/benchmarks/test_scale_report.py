"""What `make bench-scale` reports of what it measured; that it measures, only a run of it shows."""

from __future__ import annotations

import io

from rich.console import Console

from benchmarks.scale import report
from benchmarks.scale.benchmark import Plan
from benchmarks.scale.deployment import Memory, kind_of
from benchmarks.scale.kinds import Kind
from benchmarks.scale.measure import Moved, Times
from benchmarks.scale.profiling import summary

PLAN = Plan(cells=10, hosts=100, servers=20_000, movers=16, seconds=40.0, reads=30, host_subset_size=1)


def figures(factor: float) -> dict[str, object]:
    times = Times([0.1 * factor, 0.2 * factor, 0.3 * factor])
    return {
        "list": times,
        "decisions": 10 / factor,
        "cpu list": {"api": 50.0 * factor, "devcloud": 0.1},
        "moves 1": Moved(1.0, 40, 0, times, times),
        "kind near-live": Kind(times, times, failed=2),
        "memory": {"conductor-cell1": Memory(100, 50), "conductor-cell2": Memory(200, 50)},
        "connections": 20,
    }


def test_each_figure_is_shown_for_both_clouds_with_their_ratio() -> None:
    answer = report.as_json(PLAN, {1: figures(1), 10: figures(2)})
    assert answer["cells"]["10"]["list"] == {"number": 3, "median_ms": 400.0, "p99_ms": 600.0}
    text = io.StringIO()
    report.show(answer, Console(file=text, width=150))
    rows = {
        cells[1].strip(): [one.strip() for one in cells[2:5]]
        for line in text.getvalue().splitlines()
        if len(cells := line.split("│")) > 4
    }
    assert rows["GET /servers/detail?limit=1000: median"] == ["200.0 ms", "400.0 ms", "2.00"]
    assert rows["decisions over all hosts"] == ["10.0 /s", "5.0 /s", "0.50"]
    assert rows["resident: conductors of cells, each"] == ["150.0 MiB", "150.0 MiB", "1.00"]
    assert rows["CPU for a list: api"][2] == "2.00"
    assert rows["CPU for a list: all"] == ["50.1 ms", "100.1 ms", "2.00"]
    assert "CPU for a list: devcloud" not in rows
    assert rows["live migrations to another cell: number"] == ["3", "3", "1.00"]
    assert rows["for which the guest did nothing: median"] == ["200.0 ms", "400.0 ms", "2.00"]
    assert "live migrations inside a cell: number" not in rows


def test_processes_of_a_sort_are_counted_together() -> None:
    assert {kind_of(name) for name in ("super1", "super2")} == {"super conductors"}
    assert kind_of("conductor-cell7") == "conductors of cells"


def test_a_profile_names_functions_by_samples() -> None:
    text = summary("a (x.py:1);b (y.py:2) 3\na (x.py:9);c (z.py:1) 1\n")
    assert "4 samples" in text
    assert " 100.0 %  a (x.py" in text
    assert "  75.0 %  b (y.py" in text
