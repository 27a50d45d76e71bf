"""``causeway adopt check``: what would become of a cloud that runs Nova if it were taken over now."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from oslo_config import cfg

from causeway.cli import extras
from causeway.cli.adopt.group import adopt
from causeway.cli.adopt.nova_config import nova_config_option
from causeway.cli.database_errors import database_errors
from causeway.conf import new_config
from causeway.errors import CausewayError

if TYPE_CHECKING:
    from causeway.adopt.check import ComputeFiles

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class NotPossible(click.ClickException):
    """Nothing was checked: something else than a finding."""

    exit_code = 2


@adopt.command()
@nova_config_option("A nova.conf of Nova's API; may be given several times, later ones win.", name="nova")
@click.option(
    "--compute-config",
    "computes",
    multiple=True,
    metavar="HOST=FILE",
    help="A nova.conf of the compute HOST; * is all hosts that are not named. Several files of one host: later ones win.",
)
@click.option("--policy", type=_FILE, help="Nova's policy file.")
@click.option("--look", "looks", multiple=True, type=_FILE, help="What `causeway adopt look --json` printed on a host.")
@click.option(
    "--config-file", "own", multiple=True, type=_FILE, help="A file of Causeway's API: its cells are compared."
)
@click.option(
    "--format",
    "kind",
    default="text",
    show_default=True,
    type=click.Choice(["text", "markdown", "html", "json"]),
    help="The format.",
)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="A file instead of the terminal.")
def check(
    nova: tuple[Path, ...],
    computes: tuple[str, ...],
    policy: Path | None,
    looks: tuple[Path, ...],
    own: tuple[Path, ...],
    kind: str,
    output: Path | None,
) -> None:
    """Say of each server, host and option of a cloud that runs Nova whether it can be taken over: as it is, with a difference, or
    what blocks and what to do then.

    Nova's databases, Placement, Neutron and Cinder are read, with the URLs and accounts in Nova's own files. Nothing is changed,
    and no value of an option is shown. Exit status 0: nothing blocks; 1: something does; 2: it could not be checked.
    """
    extras.require("database", "`causeway adopt check`")
    if kind in ("markdown", "html"):
        extras.require("client", f"`--format {kind}`")
    from causeway.adopt.check import Asked
    from causeway.adopt.check import check as look
    from causeway.cli.adopt import check_reports

    try:
        asked = Asked(nova, _computes(computes), policy, new_config(config_files=own) if own else None, looks)
        report = look(asked)
    except CausewayError as failure:
        raise NotPossible(" ".join(filter(None, (failure.message, failure.details)))) from failure
    except cfg.Error as failure:
        raise NotPossible(str(failure)) from failure
    except database_errors() as failure:
        # Its text may have a URL with a password.
        raise NotPossible(f"A database of Nova's can't be opened: {type(failure).__name__}.") from failure
    text = check_reports.as_text(report, kind)
    if output is None:
        click.echo(text)
    else:
        output.write_text(text + "\n", encoding="utf-8", errors="replace")
        click.echo(f"{check_reports.summary(report)} The report is in {output}.")
    if report.is_blocked:
        sys.exit(1)


def _computes(given: Sequence[str]) -> ComputeFiles:
    from causeway.adopt.check import ComputeFiles

    files: dict[str, tuple[Path, ...]] = {}
    for each in given:
        host, _equals, name = each.partition("=")
        path = Path(name)
        if not host or not name or not path.is_file():
            raise click.BadParameter(
                f"{each}: HOST=FILE, with a file that exists, was expected.", param_hint="--compute-config"
            )
        files[host] = (*files.get(host, ()), path)
    return ComputeFiles(files)


__all__ = ["check"]
