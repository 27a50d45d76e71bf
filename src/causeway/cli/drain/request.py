"""The options that say what a drain is to do, and the request for the API that they make."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import click

from causeway.cli import ask
from causeway.model.drains import TO_CHOOSE, Afterwards, First, How, Limits
from causeway.openstack_plugin import drain_texts

Command = TypeVar("Command", bound=Callable[..., Any])
Read = TypeVar("Read")

_MIB = 1 << 20


class Dashed(click.Choice[str]):
    """A choice of words with dashes, which may be given with underscores, as the API has them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(str(value).replace("_", "-"), param, ctx)


def _in_bytes(_context: click.Context, _option: click.Parameter, mib: float | None) -> int | None:
    return None if mib is None else round(mib * _MIB)


_LIMITS = [
    click.option("--limit", "total", metavar="NUMBER", type=int, help="Moves at once in all."),
    click.option(
        "--limit-per-source-host", "per_source_host", metavar="NUMBER", type=int, help="Moves at once from a host."
    ),
    click.option(
        "--limit-per-target-host", "per_target_host", metavar="NUMBER", type=int, help="Moves at once to a host."
    ),
    click.option(
        "--limit-per-cell-pair",
        "per_cell_pair",
        metavar="NUMBER",
        type=int,
        help="Moves at once from one cell to another.",
    ),
    click.option(
        "--limit-rate",
        "bytes_per_second",
        metavar="MIB_PER_SECOND",
        type=float,
        callback=_in_bytes,
        help="MiB a second in all, of disks and memory that travel while their guests run.",
    ),
]
# The names of release 0.1, which work and are not shown.
_FORMER_LIMITS = [
    *(
        click.option(f"--{name}", f"former_{limit}", type=int, hidden=True)
        for name, limit in (
            ("at-once", "total"),
            ("per-source-host", "per_source_host"),
            ("per-target-host", "per_target_host"),
            ("per-cell-pair", "per_cell_pair"),
        )
    ),
    click.option("--mib-per-second", "former_bytes_per_second", type=float, callback=_in_bytes, hidden=True),
]
_OPTIONS = [
    click.option("--cell", "cells", multiple=True, help="Empty this cell."),
    click.option("--host", "hosts", multiple=True, help="Empty this host."),
    click.option("--aggregate", "aggregates", multiple=True, help="Empty the hosts of this aggregate."),
    click.option("--zone", "zones", multiple=True, help="Empty the hosts of this availability zone."),
    click.option("--project", "projects", multiple=True, help="Move all servers of this project (name or id)."),
    click.option("--server", "servers", multiple=True, help="Move this server (name or id)."),
    click.option(
        "--to-cell", "to_cells", multiple=True, help="To hosts of this cell; without any --to: wherever it fits."
    ),
    click.option("--to-host", "to_hosts", multiple=True, help="To this host."),
    click.option("--to-aggregate", "to_aggregates", multiple=True, help="To hosts of this aggregate."),
    click.option(
        "--how",
        type=Dashed([how.value.replace("_", "-") for how in TO_CHOOSE]),
        default=How.GENTLEST.value,
        show_default=True,
        help="How servers are moved; gentlest: live, near-live, warm or cold, the first that works for each.",
    ),
    click.option(
        "--flavor", "flavors", multiple=True, metavar="OLD=NEW", help="Resize servers of a flavor to another one."
    ),
    click.option(
        "--window",
        "windows",
        multiple=True,
        metavar='"DAYS FROM-TO [ZONE]"',
        help='When moves may begin: "mon-fri 22:00-06:00 Europe/Zurich", "sat,sun 00:00-00:00", "daily 01:00-05:00".',
    ),
    click.option(
        "--deadline",
        metavar="DATE",
        help="When it must be over: 2027-03-01 or 2027-03-01T18:00+01:00 (UTC without a zone).",
    ),
    *_LIMITS,
    *_FORMER_LIMITS,
    click.option(
        "--afterwards",
        type=Dashed([each.value.replace("_", "-") for each in Afterwards]),
        default=Afterwards.CONFIRM.value,
        show_default=True,
        help="Who confirms moves that wait for it: the drain at once, or after hours, or the servers' owners.",
    ),
    click.option("--confirm-after", type=float, metavar="HOURS", help="With --afterwards confirm-later."),
    click.option("--retries", type=int, help="How often the move of a server is tried again."),
    click.option("--stop-after", type=int, help="Pause after so many failures; 0: never."),
    click.option(
        "--first",
        type=click.Choice([each.value for each in First]),
        default=First.LARGEST.value,
        show_default=True,
        help="Which servers go first.",
    ),
    click.option("--reason", help="The reason that owners see."),
]


def request_options(command: Command) -> Command:
    """Adds the options; the command gets them as keyword arguments, for `request_of`."""
    return _with(_OPTIONS, command)


def limit_options(command: Command) -> Command:
    """Adds the options of limits only, for `limits_of`."""
    return _with([*_LIMITS, *_FORMER_LIMITS], command)


def _with(options: list[Callable[[Any], Any]], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def request_of(connection: Any, name: str, timeout: float, given: dict[str, Any]) -> dict[str, Any]:
    """The body of a request. Names of projects and servers become ids. Raises UsageError for what can't be read."""
    scope = {kind: list(given[kind]) for kind in ("cells", "hosts", "aggregates", "zones") if given[kind]}
    if not scope and not given["projects"] and not given["servers"]:
        raise click.UsageError("Say what is to be moved: --cell, --host, --aggregate, --zone, --project or --server.")
    targets = {kind: list(given[f"to_{kind}"]) for kind in ("cells", "hosts", "aggregates") if given[f"to_{kind}"]}
    drain: dict[str, Any] = {
        "name": name,
        "scope": scope,
        "how": given["how"].replace("-", "_"),
        "first": given["first"],
        "afterwards": given["afterwards"].replace("-", "_"),
    }
    flavors = dict(_read("--flavor", drain_texts.flavor, text) for text in given["flavors"])
    windows = [_read("--window", drain_texts.window, text) for text in given["windows"]]
    deadline = None if given["deadline"] is None else _read("--deadline", drain_texts.deadline, given["deadline"])
    for key, value in (
        ("targets", targets),
        ("flavors", flavors),
        ("windows", windows),
        ("deadline", deadline),
        ("limits", limits_of(given)),
    ):
        if value:
            drain[key] = value
    drain |= {key: given[key] for key in ("confirm_after", "retries", "stop_after", "reason") if given[key] is not None}
    if given["projects"]:
        scope["projects"] = [ask.id_of_project(connection, project) for project in given["projects"]]
    if given["servers"]:
        scope["servers"] = [ask.id_of_server(connection, server, timeout) for server in given["servers"]]
    return {"drain": drain}


def limits_of(given: dict[str, Any]) -> dict[str, Any]:
    """The limits that were given."""
    names = [field.name for field in dataclasses.fields(Limits)]
    former = {name: given.get(f"former_{name}") for name in names}
    found = {name: given[name] if given.get(name) is not None else former[name] for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _read(option: str, read: Callable[[str], Read], text: str) -> Read:
    try:
        return read(text)
    except drain_texts.Unreadable as unreadable:
        raise click.UsageError(f"{option}: {unreadable}.") from None
