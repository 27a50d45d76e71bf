"""``python -m verify [GROUP | GROUP/PART]... [--again] [--record] [--list] [--json FILE]``. Status 0 only if all of it passed."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import click
from rich.console import Console
from rich.table import Table

from verify import lanes, page, report
from verify.outcomes import ROOT, WRITTEN, Kept, Outcome, checkout
from verify.parts import PARTS, SETUP, Part, chosen
from verify.running import run

FOLDER = ROOT / "build/verify"
SUMMARY, LAST = (ROOT / name for name in WRITTEN)


@click.command()
@click.argument("names", nargs=-1)
@click.option("--again", is_flag=True, help="Run what passed already, too.")
@click.option("--record", is_flag=True, help="Write docs/verified.md even if only some parts were run; it says so.")
@click.option("--list", "only_list", is_flag=True, help="Show the parts, and run none.")
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the report here, too."
)
def main(names: tuple[str, ...], again: bool, record: bool, only_list: bool, json_file: Path | None) -> None:
    """Runs the parts that are named (all without a name), and continues where an earlier run stopped."""
    console = Console(width=None if sys.stdout.isatty() else 150)
    try:
        parts = chosen(names)
    except LookupError as error:
        raise click.UsageError(f"there is no part {error}; --list shows all") from error
    if only_list:
        console.print(_listed(parts))
        return
    now = checkout()
    kept = Kept(FOLDER, now)
    found = {part.title: kept.load(part.title) for part in parts}
    passed = {title for title, outcome in found.items() if outcome is not None and outcome.status == "passed"}
    left = [part for part in parts if again or part.title not in passed]
    done = len(parts) - len(left)
    minutes = lanes.minutes(left)
    console.print(
        f"{len(left)} parts, about {minutes:.0f} min on two quiet cores" + (f"; {done} passed before" if done else "")
    )
    _set_up(left, console)
    try:
        for batch in lanes.batches(left):
            _run(batch, kept, console, found, from_start=again)
    except KeyboardInterrupt:
        console.print("interrupted; the next run continues here")
    if record:
        found = {part.title: found.get(part.title) or kept.latest(part.title) for part in PARTS}
    outcomes = [outcome for outcome in found.values() if outcome is not None]
    last = report.read(json.loads(LAST.read_text())).figures if LAST.exists() else {}
    missing = [title for title, outcome in found.items() if outcome is None]
    date = datetime.now(UTC).isoformat(timespec="minutes")
    made = report.Report(now.state, now.commit, now.changed, date, report.machine(), outcomes, missing, last)
    _write(made, kept.folder, json_file, summarize=record or (len(parts) == len(PARTS) and not missing))
    console.print(_table(made))
    console.print(f"{kept.folder / 'report.html'}", highlight=False, soft_wrap=True)
    sys.exit(0 if made.passed else 1)


def _listed(parts: list[Part]) -> Table:
    shown = Table("Part", "Minutes", "Lane", "What it proves")
    for part in parts:
        shown.add_row(part.title, f"{part.minutes:.0f}", part.lane, part.about)
    return shown


def _set_up(parts: list[Part], console: Console) -> None:
    for need in dict.fromkeys(need for part in parts for need in part.needs):
        console.print(f"installing what is missing: {need}")
        subprocess.run(SETUP[need], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def _run(
    batch: lanes.Lanes, kept: Kept, console: Console, found: dict[str, Outcome | None], *, from_start: bool
) -> None:
    """Runs lanes at the same time. ``found`` gets title -> outcome of each part that ended, also when Ctrl-C ends the others."""
    said: dict[str, str] = {}
    with console.status("") as status:

        def show(part: Part, line: str) -> None:
            said[part.title] = f"{part.title}: {line[:100]}"
            status.update("\n".join(said.values()))

        def run_part(part: Part, interrupted: Event) -> None:
            console.print(f"{part.title}: {part.about} (about {part.minutes:.0f} min)", highlight=False)
            outcome = found[part.title] = run(
                part, kept, lambda line: show(part, line), interrupted, from_start=from_start
            )
            said.pop(part.title, None)
            _print_outcome(outcome, console)

        lanes.run(batch, run_part)


def _print_outcome(outcome: Outcome, console: Console) -> None:
    counted = report.totals([outcome])
    counts = ", ".join(f"{count} {name}" for name, count in counted.items() if count or name == "passed")
    said = f", {counts}" if any(counted.values()) else ""
    console.print(f"{outcome.part}: {outcome.status}{said}, {outcome.seconds / 60:.1f} min", highlight=False)
    if outcome.status != "passed":
        for name in outcome.counts.failed[:20]:
            console.print(f"    {name}", markup=False, highlight=False, soft_wrap=True)
        if outcome.reason:
            console.print(f"    {outcome.reason}", markup=False, highlight=False, soft_wrap=True)
        console.print(f"    all that it printed: {outcome.log}", markup=False, highlight=False, soft_wrap=True)


def _write(made: report.Report, folder: Path, json_file: Path | None, *, summarize: bool) -> None:
    """``summarize``: in docs/verified.md."""
    written = json.dumps(report.as_dict(made), indent=1) + "\n"
    for file in (folder / "report.json", *((json_file,) if json_file else ()), *((LAST,) if summarize else ())):
        file.write_text(written)
    (folder / "report.html").write_text(page.page(made))
    if summarize:
        SUMMARY.write_text(report.markdown(made))


def _table(made: report.Report) -> Table:
    shown = Table(*(name.capitalize() for name in report.HEADER))
    for row in report.rows(made):
        shown.add_row(*row)
    return shown


if __name__ == "__main__":
    main()
