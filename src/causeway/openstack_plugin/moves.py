"""``openstack server move explain``: where a server could be moved to, and why not elsewhere."""

from __future__ import annotations

import argparse

from causeway.openstack_plugin import asking, words
from causeway.openstack_plugin.columns import Columns, Rows, VerdictCommand, Worded, rows
from causeway.openstack_plugin.whole_tables import WholeLister

HOSTS: Columns = [
    ("Cell", lambda each: each["cell"]),
    ("Host", lambda each: each["host"]),
    ("Fits", lambda each: each["fits"]),
    ("Chosen", lambda each: each["chosen"]),
    ("Recipe", lambda each: each["recipe"]),
    ("Weight", lambda each: each["weight"]),
    ("Why", lambda each: words.why(each)),
    (
        "Checks",
        lambda each: Worded(
            each["checks"], lambda checks: "\n".join([*map(words.check, checks), each["note"]]).strip()
        ),
    ),
]


class ExplainMove(VerdictCommand, WholeLister):
    """Say where a server could be moved to, and why not to each of the other hosts

    Nothing is moved or claimed. The exit status is 0 if a host fits, 1 if none does.
    """

    folded = ("Checks",)
    reasons = ("Why",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("server", metavar="<server>", help="The server (name or ID)")
        parser.add_argument(
            "--flavor", metavar="<flavor>", help="The flavor to resize to (name or ID); without it: a cold migration"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        server = asking.id_of_server(self.compute, parsed_args.server)
        flavor = None if parsed_args.flavor is None else asking.id_of_flavor(self.compute, parsed_args.flavor)
        answer = asking.ask(self.compute, f"/os-causeway/servers/{server}/move-candidates", query={"flavor": flavor})
        found = answer["move_candidates"]
        self.note(
            f"Server {found['server']}, on {found['source_host']} in {found['source_cell']}, flavor {found['flavor']}"
        )
        self.note(f"Would move: {words.contents(found['moves'])}")
        if found["refusal"]:
            self.note(f"The request would be refused now: {found['refusal']}")
        for cell in found["silent_cells"]:
            self.note(f"Cell {cell} does not answer: nothing is known of its hosts.")
        self.note(found["summary"])
        self.status = 0 if any(each["fits"] for each in found["candidates"]) else 1
        return rows(HOSTS, found["candidates"])
