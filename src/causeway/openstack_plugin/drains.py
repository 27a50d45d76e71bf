"""``openstack drain ...``: moves many servers out of a scope."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from osc_lib import exceptions
from osc_lib.command import command

from causeway.openstack_plugin import asking, words
from causeway.openstack_plugin.columns import (
    CloudCommand,
    Columns,
    Entry,
    Rows,
    Worded,
    add_paging,
    fields,
    for_each,
    lines,
    rows,
)
from causeway.openstack_plugin.drain_requests import add_limits, add_request, limits_of, request_of
from causeway.openstack_plugin.drain_texts import DAYS
from causeway.openstack_plugin.whole_tables import WholeLister

PATH = "/os-causeway/drains"
# Planning thousands of servers takes its time.
PLAN_TIMEOUT = 600.0
# How many servers of a plan people are shown.
MOST_SHOWN = 50
STATES = ("planned", "running", "paused", "cancelling", "cancelled", "rolling_back", "rolled_back", "done")
SERVER_STATES = (
    "pending", "blocked", "asked", "moved", "confirming", "done", "failed", "passed_over", "reverting", "reverted",
)  # fmt: skip


def _counts(counts: Entry) -> str:
    """How many servers are in which state."""
    said = [f"{counts[state]} {state}" for state in SERVER_STATES if counts.get(state)]
    return ", ".join(said) or "none"


DRAINS: Columns = [
    ("ID", lambda each: each["id"]),
    ("Name", lambda each: each["name"]),
    ("State", lambda each: each["state"]),
    ("Servers", lambda each: Worded(each["progress"]["servers"], _counts)),
    ("Ends", lambda each: Worded(each["progress"].get("ends_at"), lambda _end: words.end_of_drain(each))),
    ("Bytes Done", lambda each: Worded(each["progress"]["bytes_done"], words.size)),
    ("Bytes Total", lambda each: Worded(each["progress"]["bytes_total"], words.size)),
    ("Created At", lambda each: each["created_at"]),
    ("Started At", lambda each: each["started_at"]),
    ("Ended At", lambda each: each["ended_at"]),
    ("Note", lambda each: each["note"]),
]
SERVERS: Columns = [
    ("Server", lambda each: each["instance_uuid"]),
    ("Name", lambda each: each["name"]),
    ("State", lambda each: each["state"]),
    ("How", lambda each: each["how"]),
    ("Source Host", lambda each: each["source_host"]),
    ("Target Host", lambda each: each["target_host"]),
    ("Bytes", lambda each: Worded(each["bytes"], words.size)),
    ("Seconds", lambda each: Worded(each["seconds"], words.duration)),
    ("Pause", lambda each: Worded(each["pause"], words.duration)),
    ("Why", lambda each: each["why"]),
    ("Help", lambda each: each["help"]),
]
LONG_SERVERS: Columns = [
    ("Project", lambda each: each["owner_project"]),
    ("Source Cell", lambda each: each["source_cell"]),
    ("Target Cell", lambda each: each["target_cell"]),
    ("Flavor", lambda each: each["flavor"]),
    ("New Flavor", lambda each: each["new_flavor"]),
    ("Memory MB", lambda each: each["memory_mb"]),
    ("Attempts", lambda each: each["attempts"]),
    ("Not Before", lambda each: each["not_before"]),
    ("Began At", lambda each: each["began_at"]),
    ("Ended At", lambda each: each["ended_at"]),
    ("Request ID", lambda each: each["request_id"]),
]


def _window(found: Entry) -> str:
    days = ",".join(DAYS[day] for day in found["days"])
    return f"{days} {found['start']}-{found['end']} {found['zone']}"


def _shown(drain: Entry, plan: Entry | None = None) -> Rows:
    """A drain with its request, and its ``plan`` if there is one."""
    flat = {name: value for name, value in drain.items() if name != "request"}
    planned = {} if plan is None else {f"plan_{name}": value for name, value in plan.items()}
    said: dict[str, Callable[[Any], str]] = {
        "progress": lambda _found: _progress(drain),
        "windows": lambda windows: "\n".join(map(_window, windows)),
    }
    said |= dict.fromkeys(("scope", "targets", "flavors", "limits", "closed"), lines)
    said["pacing"] = _pacing
    return fields(flat | drain["request"] | planned, said | {f"plan_{name}": say for name, say in _PLAN.items()})


def _progress(drain: Entry) -> str:
    parts = [
        f"arrived: {words.servers_of_drain(drain)}",
        f"servers: {_counts(drain['progress']['servers'])}",
        f"bytes: {words.bytes_of_drain(drain)}",
    ]
    return "\n".join(parts)


def _pacing(found: Entry | None) -> str:
    """What a running drain has measured: the rate of all moves, and how many it lets run at once where."""
    if found is None:
        return ""
    climbs = [f"{name}: {climb['limit']} at once" for name, climb in sorted(found["climbs"].items())]
    return "\n".join([f"rate: {words.rate(found['rate'])}", *climbs])


def _planned(servers: list[Entry]) -> str:
    """The planned servers, a line each. Those that can't go come first."""
    counted = Counter("can't go" if each["why"] else str(each["how"]) for each in servers)
    said = [", ".join(f"{number} {how}" for how, number in counted.most_common())]
    for each in sorted(servers, key=lambda server: not server["why"])[:MOST_SHOWN]:
        if each["why"]:
            said.append(f"{each['name']}: {each['why']}" + (f" {each['help']}" if each["help"] else ""))
        else:
            parts = [str(each["how"]), f"{each['source_host']} -> {each['target_host']}", words.size(each["bytes"])]
            said.append(f"{each['name']}: {', '.join([*parts, words.duration(each['seconds'])])}")
    left = len(servers) - MOST_SHOWN
    return "\n".join(said + ([f"... and {left} more: -f json has them all"] if left > 0 else []))


_PLAN: dict[str, Callable[[Any], str]] = {
    "servers": _planned,
    "bytes": words.size,
    "seconds": words.duration,
    "doubled": words.duration,
    "shortages": lambda found: "\n".join(str(each["sentence"]) for each in found),
    "notes": "\n".join,
}


class _OfDrain(CloudCommand):
    """Commands of one drain."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("drain", metavar="<drain>", help="The drain (name or ID)")
        return parser

    def path(self, wanted: str) -> str:
        return f"{PATH}/{quote(asking.id_of(self.compute, PATH, 'drains', wanted), safe='')}"


class PlanDrain(CloudCommand, command.ShowOne):
    """Say what a drain would do, with each of its servers: a dry run

    With "-f json" each server is there with its path, target, bytes, duration and pause.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_request(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        identity = self.app.client_manager.sdk_connection.identity
        body = request_of(parsed_args, "plan", self.compute, identity)
        answer = asking.ask(self.compute, f"{PATH}/plan", method="POST", body=body, timeout=PLAN_TIMEOUT)
        return fields(answer["plan"], _PLAN)


class CreateDrain(CloudCommand, command.ShowOne):
    """Plan a drain and store it with its plan: nothing moves before it is started"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="<name>", help="Its name")
        add_request(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        identity = self.app.client_manager.sdk_connection.identity
        body = request_of(parsed_args, parsed_args.name, self.compute, identity)
        answer = asking.ask(self.compute, PATH, method="POST", body=body, timeout=PLAN_TIMEOUT)
        return _shown(answer["drain"], answer["plan"])


class ListDrain(CloudCommand, WholeLister):
    """List drains, newest first"""

    folded = ("Servers", "Ends")
    reasons = ("Note",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--state", choices=STATES, action="append", help="List those in this state; may be repeated"
        )
        add_paging(parser, "drains")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        query = {"state": parsed_args.state, "marker": parsed_args.marker}
        return rows(DRAINS, asking.pages(self.compute, PATH, "drains", query, most=parsed_args.limit))


class ShowDrain(_OfDrain, command.ShowOne):
    """Show a drain: what was asked for, and how far it has come"""

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        return _shown(asking.ask(self.compute, self.path(parsed_args.drain))["drain"])


class ListDrainServer(_OfDrain, WholeLister):
    """List the servers of a drain: how each is moved and to where, or why it can't go, and its state"""

    reasons = ("Why", "Help")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--state", choices=SERVER_STATES, action="append", help="List those in this state; may be repeated"
        )
        parser.add_argument("--long", action="store_true", help="List additional fields")
        add_paging(parser, "servers")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        query = {"state": parsed_args.state, "marker": parsed_args.marker}
        path = f"{self.path(parsed_args.drain)}/servers"
        found = asking.pages(self.compute, path, "servers", query, most=parsed_args.limit)
        return rows([*SERVERS, *(LONG_SERVERS if parsed_args.long else [])], found)


class SetDrain(_OfDrain):
    """Change how many moves of a drain may run at once, also while it runs"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_limits(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        limits = limits_of(parsed_args)
        if not limits:
            raise exceptions.CommandError("Nothing is to be changed: give at least one limit.")
        body = {"drain": {"limits": limits}}
        asking.ask(self.compute, self.path(parsed_args.drain), method="PUT", body=body)


class _Act(_OfDrain):
    """Asks for an action of the drain, and returns at once."""

    action = ""

    def parameters(self, _parsed_args: argparse.Namespace) -> dict[str, Any] | None:
        return None

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        body = {self.action: self.parameters(parsed_args)}
        asking.ask(self.compute, f"{self.path(parsed_args.drain)}/action", method="POST", body=body)


class StartDrain(_Act):
    """Begin to move the servers of a drain"""

    action = "start"


class PauseDrain(_Act):
    """Begin no more moves of a drain; those under way are completed"""

    action = "pause"


class ResumeDrain(_Act):
    """Resume a drain that is paused"""

    action = "resume"


class CancelDrain(_Act):
    """End a drain; moves under way are completed, or undone (--undo)"""

    action = "cancel"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--undo", action="store_true", help="Undo moves under way, where that is still possible")
        return parser

    def parameters(self, parsed_args: argparse.Namespace) -> dict[str, Any] | None:
        return {"undo": True} if parsed_args.undo else None


class RollBackDrain(_Act):
    """Undo moves under way, and revert those that wait to be confirmed"""

    action = "rollback"


class DeleteDrain(_OfDrain):
    """Delete the records of drains that have ended, or never began; what they moved stays where it is"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = CloudCommand.get_parser(self, prog_name)
        parser.add_argument("drains", metavar="<drain>", nargs="+", help="The drain(s) (name or ID)")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        for_each(
            self,
            parsed_args.drains,
            lambda wanted: asking.ask(self.compute, self.path(wanted), method="DELETE"),
            "drains",
        )
