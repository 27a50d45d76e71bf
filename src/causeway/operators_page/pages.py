"""What each page is made of: the name of its template, its title, and its data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import jinja2

from causeway.openstack_plugin import words
from causeway.operators_page import drawing
from causeway.operators_page.cloud import Cloud

ARRIVED = ("moved", "confirming", "done")
AT_REST = ("planned", "cancelled", "rolled_back", "done")
# The most findings of a host that are shown.
MOST_FINDINGS = 10
# The buttons of a drain by its state; and the questions before actions that can't be undone.
BUTTONS = {
    "planned": ("start", "cancel"),
    "running": ("pause", "cancel", "rollback"),
    "paused": ("resume", "cancel", "rollback"),
    "cancelling": ("rollback",),
    "cancelled": ("rollback",),
    "done": ("rollback",),
}
QUESTIONS = {
    (
        "drains",
        "cancel",
    ): "Cancel this drain? It ends, and the hosts that it had closed are opened. Servers that have arrived stay.",
    (
        "drains",
        "rollback",
    ): "Roll this drain back? Every server whose resize waits to be confirmed returns to where it was.",
    ("operations", "cancel"): "Cancel this operation? Everything that it did is undone.",
    ("servers", "confirm"): "Confirm this resize? What the source keeps of the server is deleted for good.",
    ("servers", "revert"): "Revert this resize? What was written to local disks since then is lost.",
}


@dataclass
class Page:
    """``is_live``: it changes by itself, and is made again while a browser shows it."""

    template: str
    title: str
    data: dict[str, Any] = field(default_factory=dict)
    is_live: bool = True


def overview(cloud: Cloud) -> Page:
    operations = cloud.operations()
    stuck = [one for one in operations if one["state"] == "stuck"]
    drains = [one for one in cloud.drains() if one["state"] not in AT_REST]
    data = {"cells": cloud.cells(), "stuck": stuck, "operations": operations, "drains": drains}
    return Page("overview.html.j2", "Cells and hosts", data)


def drains(cloud: Cloud) -> Page:
    return Page("drains.html.j2", "Drains", {"drains": cloud.drains()})


def drain(cloud: Cloud, drain_id: str, now: datetime) -> Page:
    found, servers = cloud.drain(drain_id), cloud.servers_of_drain(drain_id)
    ends = [one["ended_at"] for one in servers if one["state"] in ARRIVED and one["ended_at"] is not None]
    to_arrive = [one for one in servers if one["state"] not in ("passed_over", "reverted")]
    # Those that need attention come first.
    order = ("failed", "blocked", "asked", "confirming", "moved", "pending")
    places = {state: number for number, state in enumerate(order)}
    servers.sort(key=lambda one: (places.get(one["state"], len(order)), one["name"], one["instance_uuid"]))
    data = {
        "drain": found,
        "servers": servers,
        "curve": drawing.curve(found, ends, len(to_arrive), now),
        "buttons": BUTTONS.get(found["state"], ()),
    }
    return Page("drain.html.j2", f"Drain {found['name']}", data)


def operations(cloud: Cloud) -> Page:
    return Page("operations.html.j2", "Operations under way", {"operations": cloud.operations()})


def operation(cloud: Cloud, operation_id: str) -> Page:
    found = cloud.operation(operation_id)
    data = {
        "operation": found,
        "sequence": drawing.sequence(found["steps"], {"size": words.size, "duration": words.duration}),
    }
    return Page("operation.html.j2", f"Operation {found['recipe']}", data)


def server(cloud: Cloud, server_id: str) -> Page:
    found = cloud.server(server_id)
    data = {"server": found, "operations": cloud.operations_of(server_id), "actions": cloud.actions_of(server_id)}
    return Page("server.html.j2", f"Server {found['name']}", data)


def explanation(cloud: Cloud, server_id: str) -> Page:
    data = {"found": cloud.explanation(server_id), "server": cloud.server(server_id)}
    return Page("explanation.html.j2", f"Where {data['server']['name']} could go", data, is_live=False)


def audit(cloud: Cloud, *, wanted: bool) -> Page:
    """The page of the audit. The audit takes a while, so it only runs if it is ``wanted``."""
    return Page("audit.html.j2", "Audit", {"report": cloud.audit() if wanted else None}, is_live=False)


def adoption(cloud: Cloud) -> Page:
    found = cloud.adoption()
    for cell in found["cells"]:
        for host in cell["hosts"]:
            host["blocking"] = sum(finding["blocks"] for finding in host["findings"])
            host["findings"].sort(key=lambda finding: not finding["blocks"])
    # Others were never Nova's.
    hosts = [host for cell in found["cells"] for host in cell["hosts"] if host["state"] is not None]
    taken = [host for host in hosts if host["state"] == "taken"]
    data = {
        "found": found,
        "hosts": len(hosts),
        "taken": len(taken),
        "servers": sum(host["servers"] or 0 for host in hosts),
        "taken_servers": sum(host["servers"] or 0 for host in taken),
        "is_known": all(host["servers"] is not None for host in hosts),
        "states": Counter(host["state"] for host in hosts),
        "blocked": sum(host["blocking"] > 0 for host in hosts),
    }
    return Page("adoption.html.j2", "Taking over", data)


def question(kind: str, identity: str, action: str) -> Page | None:
    """The question before an action; None if it needs none, or there is no such action."""
    text = QUESTIONS.get((kind, action))
    if text is None:
        return None
    return Page(
        "question.html.j2",
        text.partition("?")[0] + "?",
        {"text": text, "kind": kind, "id": identity, "action": action},
        False,
    )


def environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("causeway.operators_page", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters |= {
        "size": words.size,
        "duration": words.duration,
        "standing": words.standing,
        "reason": words.reason,
        "count": words.count,
        "servers": words.servers_of_drain,
        "bytes": words.bytes_of_drain,
        "word": lambda name: str(name or "").replace("_", " "),
        "moment": words.moment,
        # What hosts say: without characters that turn around or hide what stands beside them.
        "plain": lambda text: "".join(each if each.isprintable() else "?" for each in text),
    }
    made.globals |= {
        "WIDTH": drawing.WIDTH,
        "HEIGHT": drawing.HEIGHT,
        "QUESTIONS": QUESTIONS,
        "ARRIVED": ARRIVED,
        "MOST_FINDINGS": MOST_FINDINGS,
    }
    return made
