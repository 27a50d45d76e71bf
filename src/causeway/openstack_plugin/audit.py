"""``openstack cloud audit``: whether everything that knows of servers agrees."""

from __future__ import annotations

import argparse

from causeway.openstack_plugin import asking, words
from causeway.openstack_plugin.columns import Columns, Entry, Rows, VerdictCommand, rows
from causeway.openstack_plugin.whole_tables import WholeLister

SEVERITIES = ("critical", "error", "warning")


def _columns(*, fixed: bool) -> Columns:
    return [
        ("Severity", lambda each: each["severity"]),
        ("Kind", lambda each: each["kind"]),
        ("Server", lambda each: each["server"]),
        ("Resource", lambda each: each["resource"]),
        ("Message", lambda each: each["message"]),
        ("Fixed", lambda _each: fixed),
        ("Fix", lambda each: words.fix(each, fixed=fixed)),
    ]


def _by_severity(disagreement: Entry) -> tuple[int, str]:
    return SEVERITIES.index(disagreement["severity"]), disagreement["kind"]


class AuditCloud(VerdictCommand, WholeLister):
    """Compare all records, other services and hypervisors, and list where they disagree

    The exit status is 0 if all agree, 1 if not, 2 if a part of the cloud could not be asked.
    """

    folded = ("Message", "Fix")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--fix", action="store_true", help="Fix what is safe, and list what is left")
        parser.add_argument(
            "--timeout",
            metavar="<seconds>",
            type=float,
            default=1800.0,
            help="Wait so long for the audit's end (default: 1800)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        method = "POST" if parsed_args.fix else "GET"
        answer = asking.ask(self.compute, "/os-causeway/audit", method=method, timeout=parsed_args.timeout)
        report = answer["audit"]
        for missing in report["unreached"]:
            self.note(f"Not asked: {missing}")
        if report["in_motion"]:
            self.note(f"In motion, and therefore not judged: {', '.join(report['in_motion'])}")
        looked = ", ".join(f"{count} {name}" for name, count in report["counts"].items())
        self.note(f"Looked at {looked} in {report['seconds']:.1f} s.")
        self.status = 1 if report["disagreements"] else 2 if report["unreached"] else 0
        titles, fixed = rows(_columns(fixed=True), sorted(report["fixed"], key=_by_severity))
        _titles, left = rows(_columns(fixed=False), sorted(report["disagreements"], key=_by_severity))
        return titles, [*fixed, *left]
