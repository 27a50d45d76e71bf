"""The options of ``openstack drain plan`` and ``create``, and the request that they make."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeVar

from osc_lib import exceptions

from causeway.openstack_plugin import asking, drain_texts
from causeway.openstack_plugin.columns import natural

Read = TypeVar("Read")

_MIB = 1 << 20
LIMITS = {
    "total": "in all",
    "per_source_host": "from a host",
    "per_target_host": "to a host",
    "per_cell_pair": "from a cell to another",
}


def add_request(parser: argparse.ArgumentParser) -> None:
    scope = parser.add_argument_group("What is moved (each may be repeated)")
    _add_many(scope, "--cell", "<cell>", "The servers of a cell (name)")
    _add_many(scope, "--host", "<host>", "The servers of a host")
    _add_many(scope, "--aggregate", "<aggregate>", "The servers of an aggregate's hosts (name)")
    _add_many(scope, "--zone", "<zone>", "The servers of an availability zone")
    _add_many(scope, "--project", "<project>", "The servers of a project (name or ID)")
    _add_many(scope, "--server", "<server>", "A server (name or ID)")
    targets = parser.add_argument_group("Where to (each may be repeated; without any of them wherever it fits)")
    _add_many(targets, "--to-cell", "<cell>", "To hosts of a cell (name)")
    _add_many(targets, "--to-host", "<host>", "To a host")
    _add_many(targets, "--to-aggregate", "<aggregate>", "To an aggregate's hosts (name)")
    how = parser.add_argument_group("How, when, and what then")
    how.add_argument(
        "--how",
        type=_dashed,
        choices=("gentlest", "live", "near-live", "warm", "cold"),
        help="How servers are moved (default: gentlest, the first of the others that works for a server)",
    )
    how.add_argument(
        "--flavor", metavar="<old>=<new>", type=_read_by(drain_texts.flavor), action="append", dest="flavors", default=[],
        help="Resize the servers of one flavor to another (names); others keep theirs. May be repeated",
    )  # fmt: skip
    how.add_argument(
        "--window", metavar="<window>", type=_read_by(drain_texts.window), action="append", dest="windows", default=[],
        help='When moves may begin: "DAYS HH:MM-HH:MM [ZONE]", such as "mon-fri 22:00-06:00 Europe/Zurich" or '
        '"daily 01:00-05:00" (UTC). May be repeated',
    )  # fmt: skip
    how.add_argument(
        "--deadline",
        metavar="<time>",
        type=_read_by(drain_texts.deadline),
        help="When the drain must be over (ISO 8601; without a zone: UTC)",
    )
    how.add_argument("--first", choices=("largest", "smallest"), help="Which servers go first (default: largest)")
    how.add_argument(
        "--afterwards",
        type=_dashed,
        choices=("confirm", "confirm-later", "owners"),
        help="Who confirms resizes: the drain at once (default), or later, or the servers' owners",
    )
    how.add_argument(
        "--confirm-after",
        metavar="<hours>",
        type=float,
        help="Confirm resizes so much later: --afterwards confirm-later",
    )
    how.add_argument("--retries", metavar="<number>", type=natural, help="Try a move that failed again, so many times")
    how.add_argument("--stop-after", metavar="<number>", type=natural, help="Pause after so many failures (0: never)")
    how.add_argument("--reason", metavar="<text>", help="The reason that the servers' owners see")
    add_limits(parser)


def add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("How fast")
    group.add_argument("--limit", metavar="<number>", type=natural, dest="total", help="Moves at once in all")
    for name, what in LIMITS.items():
        if name != "total":
            option = f"--limit-{name.replace('_', '-')}"
            group.add_argument(option, metavar="<number>", type=natural, dest=name, help=f"Moves at once {what}")
    group.add_argument("--limit-rate", metavar="<MiB/s>", type=float, help="MiB a second in all")


def limits_of(parsed_args: argparse.Namespace) -> dict[str, int]:
    """The limits that were given."""
    found = {name: value for name in LIMITS if (value := getattr(parsed_args, name)) is not None}
    if parsed_args.limit_rate is not None:
        found["bytes_per_second"] = round(parsed_args.limit_rate * _MIB)
    return found


def request_of(parsed_args: argparse.Namespace, name: str, compute: Any, identity: Any) -> dict[str, Any]:
    """The body of the request. ``identity``: openstacksdk's proxy, for names of projects."""
    scope = {
        "cells": parsed_args.cell,
        "hosts": parsed_args.host,
        "aggregates": parsed_args.aggregate,
        "zones": parsed_args.zone,
        "projects": [identity.find_project(each, ignore_missing=False).id for each in parsed_args.project],
        "servers": [asking.id_of_server(compute, each) for each in parsed_args.server],
    }
    if not _given(scope):
        raise exceptions.CommandError(
            "Say what is to be moved: --cell, --host, --aggregate, --zone, --project or --server."
        )
    targets = {
        "cells": parsed_args.to_cell,
        "hosts": parsed_args.to_host,
        "aggregates": parsed_args.to_aggregate,
    }
    wanted = {
        "name": name,
        "scope": _given(scope),
        "targets": _given(targets),
        "flavors": dict(parsed_args.flavors),
        "windows": parsed_args.windows,
        "limits": limits_of(parsed_args),
    }
    if parsed_args.confirm_after is not None and parsed_args.afterwards is None:
        parsed_args.afterwards = "confirm-later"
    plain = ("deadline", "first", "confirm_after", "retries", "stop_after", "reason")
    found = wanted | {key: value for key in plain if (value := getattr(parsed_args, key)) is not None}
    dashed = {key: value for key in ("how", "afterwards") if (value := getattr(parsed_args, key)) is not None}
    return {"drain": found | {key: value.replace("-", "_") for key, value in dashed.items()}}


def _dashed(text: str) -> str:
    """The type of an option whose words have dashes; they may have underscores, as in the API."""
    return text.replace("_", "-")


def _read_by(read: Callable[[str], Read]) -> Callable[[str], Read]:
    """``read`` as the type of an option of argparse."""

    def of_option(text: str) -> Read:
        try:
            return read(text)
        except drain_texts.Unreadable as unreadable:
            raise argparse.ArgumentTypeError(str(unreadable)) from None

    return of_option


def _add_many(group: argparse._ArgumentGroup, option: str, metavar: str, text: str) -> None:
    group.add_argument(option, metavar=metavar, action="append", default=[], help=text)


def _given(places: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: list(dict.fromkeys(values)) for name, values in places.items() if values}
