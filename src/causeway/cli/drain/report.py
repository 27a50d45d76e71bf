"""``causeway drain report``: a report of a drain, to be kept or sent to others."""

from __future__ import annotations

import json
from pathlib import Path

import click

from causeway.cli import ask
from causeway.cli.drain import reports
from causeway.cli.drain.group import drain, of_one_drain, path_of

_TEMPLATES = {"html": "drain.html.j2", "markdown": "drain.md.j2"}


@drain.command()
@of_one_drain
@click.option(
    "--format",
    "kind",
    default="markdown",
    show_default=True,
    type=click.Choice([*_TEMPLATES, "json"]),
    help="The format.",
)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="A file instead of the terminal.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def report(
    wanted: str,
    kind: str,
    output: Path | None,
    as_json: bool,
    state_dir: Path,
    os_cloud: str | None,
    timeout: float,
) -> None:
    """Report which servers moved when and how, how long it took, what failed and why, and what was left."""
    connection = ask.connect(state_dir, os_cloud)
    path = path_of(connection, wanted, timeout)
    shown = ask.ask(connection, path, timeout=timeout)["drain"]
    servers = ask.pages(connection, f"{path}/servers", "servers", timeout=timeout)
    made = reports.report_of(shown, servers)
    if as_json or kind == "json":
        text = json.dumps(reports.as_json(made), indent=2)
    else:
        text = reports.as_text(made, _TEMPLATES[kind])
    if output is None:
        click.echo(text)
        return
    output.write_text(text + "\n")
    click.echo(f"The report is in {output}.")
