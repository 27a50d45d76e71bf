"""``openstack cell ...``: the cells of the cloud, and what is in them."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from osc_lib.command import command

from causeway.openstack_plugin import asking
from causeway.openstack_plugin.columns import CloudCommand, Columns, Rows, fields, rows
from causeway.openstack_plugin.whole_tables import WholeLister

CELLS: Columns = [
    ("ID", lambda each: each["id"]),
    ("Name", lambda each: each["name"]),
    ("Disabled", lambda each: each["disabled"]),
    ("Answers", lambda each: each["answers"]),
    ("Hosts", lambda each: each["hosts"]["total"]),
    ("Up", lambda each: each["hosts"]["up"]),
    ("Down", lambda each: each["hosts"]["down"]),
    ("Disabled Hosts", lambda each: each["hosts"]["disabled"]),
    ("Servers", lambda each: each["servers"]),
]


class ListCell(CloudCommand, WholeLister):
    """List cells: whether they answer, their hosts and servers"""

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:  # noqa: ARG002
        return rows(CELLS, asking.ask(self.compute, "/os-causeway/cells")["cells"])


class ShowCell(CloudCommand, command.ShowOne):
    """Show a cell"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("cell", metavar="<cell>", help="The cell (name or ID)")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        path = f"/os-causeway/cells/{quote(parsed_args.cell, safe='')}"
        cell: dict[str, Any] = asking.ask(self.compute, path)["cell"]
        counts = {f"hosts_{name}": count for name, count in cell["hosts"].items() if name != "total"}
        return fields(cell | {"hosts": cell["hosts"]["total"]} | counts)
