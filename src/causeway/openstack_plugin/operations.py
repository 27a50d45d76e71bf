"""``openstack operation ...`` and ``openstack server operation list``: everything that takes long."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib.command import command

from causeway.openstack_plugin import asking, wanted, words
from causeway.openstack_plugin.columns import (
    CloudCommand,
    Columns,
    Entry,
    Rows,
    VerdictCommand,
    Worded,
    add_paging,
    fields,
    for_each,
    rows,
)
from causeway.openstack_plugin.whole_tables import WholeLister

STATES = ("proposed", "refused", "requested", "running", "undoing", "stuck", "done", "failed")
_WANTED = "The operation (ID), or a server (name or ID) for what is being done with it"
_TRANSFER = ("bytes_done", "bytes_total", "percent", "round", "seconds_left", "ended_at")

BRIEF: Columns = [
    ("ID", lambda each: each["id"]),
    ("Server", lambda each: each["instance_uuid"]),
    ("Recipe", lambda each: each["recipe"]),
    ("State", lambda each: Worded(each["state"], lambda _state: words.standing(each))),
    ("Step", lambda each: each["step"]),
    ("Progress", lambda each: Worded({name: each[name] for name in _TRANSFER[:-1]}, lambda _: words.transferred(each))),
    ("Started At", lambda each: each["started_at"]),
    ("Error", lambda each: Worded(each["error"], lambda _error: words.reason(each))),
]
LONG: Columns = [
    ("Ended At", lambda each: each["ended_at"]),
    ("Waits For", lambda each: Worded(each["waits_for"], lambda wait: "" if wait is None else str(wait["reason"]))),
    ("Cancellable", lambda each: each["is_cancellable"]),
    ("Migration", lambda each: each["migration_uuid"]),
    ("Owner", lambda each: each["owner"]),
    ("Request ID", lambda each: each["request_id"]),
]


def _listed(found: Any, parsed_args: argparse.Namespace) -> Rows:
    return rows([*BRIEF, *(LONG if parsed_args.long else [])], found)


def _shown(operation: Entry) -> Rows:
    said = {
        "state": lambda _state: words.standing(operation),
        "error": words.text_of,
        "waits_for": lambda wait: "" if wait is None else str(wait["reason"]),
        "steps": lambda steps: "\n".join(map(words.step, steps)),
    }
    return fields(operation, said)


class _Lister(WholeLister):
    folded = ("Progress",)
    reasons = ("Error", "Waits For")


class ListOperation(CloudCommand, _Lister):
    """List operations: everything that takes long with a server, newest first"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--all", action="store_true", help="List those that have ended, too")
        parser.add_argument("--server", metavar="<server>", help="List those of a server (name or ID)")
        parser.add_argument("--state", metavar="<state>", choices=STATES, help=f"One of: {', '.join(STATES)}")
        parser.add_argument("--host", metavar="<host>", help="List those that work, or worked, on a host")
        parser.add_argument("--owner", metavar="<conductor>", help="List those that a conductor works on, or did last")
        parser.add_argument("--recipe", metavar="<recipe>", action="append", help="Such as resize; may be repeated")
        parser.add_argument("--long", action="store_true", help="List additional fields")
        add_paging(parser, "operations")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        server = None if parsed_args.server is None else asking.id_of_server(self.compute, parsed_args.server)
        query = {
            "all": "1" if parsed_args.all else None,
            "server": server,
            "state": parsed_args.state,
            "host": parsed_args.host,
            "owner": parsed_args.owner,
            "recipe": parsed_args.recipe,
            "marker": parsed_args.marker,
        }
        return _listed(
            asking.pages(self.compute, "/os-causeway/operations", "operations", query, most=parsed_args.limit),
            parsed_args,
        )


class ListServerOperation(CloudCommand, _Lister):
    """List the operations of a server, newest first"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("server", metavar="<server>", help="The server (name or ID)")
        parser.add_argument("--all", action="store_true", help="List those that have ended, too")
        parser.add_argument("--long", action="store_true", help="List additional fields")
        add_paging(parser, "operations")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        path = f"/os-causeway/servers/{asking.id_of_server(self.compute, parsed_args.server)}/operations"
        query = {"all": "1" if parsed_args.all else None, "marker": parsed_args.marker}
        return _listed(asking.pages(self.compute, path, "operations", query, most=parsed_args.limit), parsed_args)


class ShowOperation(VerdictCommand, command.ShowOne):
    """Show an operation with its steps

    With --wait the exit status is 1 unless everything was done.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("operation", metavar="<operation>", help=f"{_WANTED}, or what was done last")
        parser.add_argument("--wait", action="store_true", help="Wait until it has ended, and show how far it has come")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        if not parsed_args.wait:
            return _shown(wanted.at_work_or_last(self.compute, parsed_args.operation))
        operation: dict[str, Any] = {}
        said = ""
        found = wanted.at_work_or_last(self.compute, parsed_args.operation)
        for operation in asking.follow(self.compute, found["id"]):
            now = f"{words.standing(operation)}: {operation['step'] or 'begins'}"
            # A log gets no line for each second of a transfer.
            if operation["ended_at"] is None and (now != said or self.app.stderr.isatty()):
                self.note(f"{now} {words.transferred(operation)}".rstrip())
                said = now
        self.status = 0 if operation["state"] == "done" else 1
        return _shown(operation)


class CancelOperation(CloudCommand):
    """Cancel operations that can still be undone, and undo them"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("operations", metavar="<operation>", nargs="+", help=_WANTED)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        def cancel(operation: str) -> None:
            found = wanted.at_work(self.compute, operation)
            asking.ask(self.compute, f"/os-causeway/operations/{found['id']}", method="DELETE")

        for_each(self, parsed_args.operations, cancel, "operations")
