"""The operator of a storm: cells and hosts are drained in the middle of it, and that is paused, cancelled or rolled back.

One drain is there at a time. What an administrator asks for may be lost as what users ask for; the drain's state says what came
of it. In the end none is left at work, and `judge` holds each against what is there.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from causeway.model.drains import AT_REST, IN_WORK, Drain, DrainServer, DrainServerState, DrainState, How, drain_of
from causeway.model.operations import SHELVE, SHELVE_OFFLOAD
from causeway.store.api import cells, journal
from causeway.store.api import drains as store
from causeway.store.cell import hosts, many_servers
from tests.faults.answers import Answer, call
from tests.faults.clouds.site import Site, until
from tests.faults.complaints import LEAKED, LOST, STUCK, Complaint
from tests.faults.moves import look

PATH = "/os-causeway/drains"
# Each way out of a cell: servers of the others are kept as they are, and go if their flavor may be elsewhere.
FLAVORS = {
    "cell1": {"gen1.small": "gen2.small", "gen1.large": "any.medium", "host2.medium": "gen2.small"},
    "cell2": {"gen2.small": "gen1.large"},
}
OTHER = {"cell1": "cell2", "cell2": "cell1"}
# What is asked of one that runs, and how often in comparison; "": it is left alone.
ASKED = {"": 80.0, "pause": 2.0, "resume": 6.0, "cancel": 1.0, "undo": 1.0, "rollback": 1.0, "limits": 2.0}
# In a host that was emptied and is open again there may be servers that stayed, by what became of them.
_STAYED = (DrainServerState.FAILED, DrainServerState.PASSED_OVER, DrainServerState.MOVED)
PATIENCE = 60.0


class Operator:
    """``ends``: state -> drains that came to it. ``asked``: "action kind of answer" -> how often."""

    def __init__(self, site: Site, dice: random.Random) -> None:
        self._site = site
        self._dice = dice
        self.asked: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.complaints: list[Complaint] = []
        self._known: set[str] = set()

    def act(self) -> None:
        """Whatever is next: a new drain, or something about the one that there is."""
        present = next((drain for drain in self._all() if drain.id not in self._known), None)
        if present is None:
            self._begin()
        elif present.state is DrainState.PLANNED:
            self._ask(present, "start")
        elif present.state in AT_REST:
            self._look_at_end(present)
        else:
            name = self._dice.choices(list(ASKED), list(ASKED.values()))[0]
            if name:
                self._ask(present, name)

    def finish(self) -> None:
        """No drain is left at work, and every host is open."""
        for drain in self._all():
            if drain.id not in self._known and drain.state in (DrainState.RUNNING, DrainState.PAUSED):
                self._ask(drain, "cancel")
        until(self._all, lambda found: all(drain.state in AT_REST for drain in found), PATIENCE)
        for drain in self._all():
            if drain.id not in self._known and drain.state in AT_REST:
                self._look_at_end(drain)
        self.complaints += judge(self._site)

    def _all(self) -> list[Drain]:
        return store.search(self._site.api)

    def _begin(self) -> None:
        dice, hosts = self._dice, self._site.hosts
        # Most of all where there is something to be moved.
        (host,) = dice.choices(hosts, [0.2 + len(self._site.guests_on(host)) for host in hosts])
        cell = host[: len("cell1")]
        wanted: dict[str, Any] = {
            "name": f"drain {len(self._known) + 1}",
            "scope": dice.choice([{"cells": [cell]}, {"hosts": [host]}]),
            "targets": {"cells": [OTHER[cell]]},
            "flavors": FLAVORS[cell],
            "afterwards": dice.choice(["confirm", "confirm", "owners"]),
            "limits": {"total": dice.choice([1, 3, 10])},
        }
        self._note("create", call(self._site, "POST", PATH, {"drain": wanted}, by=self._site.admin))

    def _ask(self, drain: Drain, name: str) -> None:
        path, admin = f"{PATH}/{drain.id}", self._site.admin
        if name == "limits":
            body = {"drain": {"limits": {"total": self._dice.choice([1, 3, 10])}}}
            self._note(name, call(self._site, "PUT", path, body, by=admin))
            return
        action = {"cancel": {"undo": True}} if name == "undo" else {name: None}
        self._note(name, call(self._site, "POST", f"{path}/action", action, by=admin))

    def _note(self, name: str, answer: Answer) -> None:
        self.asked[f"{name} {answer.kind}"] += 1

    def _look_at_end(self, drain: Drain) -> None:
        """Its hosts are used again, or repaired; one that is done has left no server on them that it did not report."""
        if drain.state is DrainState.DONE:
            self.complaints += list(_left_on_hosts(self._site, drain))
            for host in drain.closed:
                enable = {"host": host, "binary": "nova-compute"}
                done = call(self._site, "PUT", "/os-services/enable", enable, by=self._site.admin, microversion="2.1")
                if not done.is_accepted:
                    # Once more, later.
                    return
        self.ends[drain.state.value] += 1
        self._known.add(drain.id)


def _left_on_hosts(site: Site, drain: Drain) -> Iterator[Complaint]:
    rows = {row.instance_uuid: row for row in store.servers(site.api, drain.id)}
    where = cells.hosts(site.api)
    for host in drain.closed:
        for uuid in many_servers.on_hosts(site.cells.database(where[host]), [host]):
            row = rows.get(uuid)
            if row is None:
                yield Complaint(LEAKED, f"server {uuid} on {host}, which {drain.name} emptied, and knows nothing of")
            elif row.state not in _STAYED:
                yield Complaint(LEAKED, f"server {uuid} on {host}, of which {drain.name} says that it is {row.state}")


def judge(site: Site) -> list[Complaint]:
    """Each drain has come to an end, settled all that it asked for, and opened its hosts unless it has emptied them."""
    found: list[Complaint] = []
    drains = {drain.id: drain for drain in store.search(site.api)}
    for drain in drains.values():
        if drain.state not in AT_REST:
            found.append(Complaint(STUCK, f"{drain.name} is {drain.state}: {drain.note}"))
            continue
        if drain.closed and drain.state is not DrainState.DONE:
            found.append(Complaint(STUCK, f"{drain.name} is {drain.state}, and says that it closes {drain.closed}"))
        rows = store.servers(site.api, drain.id)
        found += [_unsettled(drain, row) for row in rows if row.state in IN_WORK or is_half_way(site, drain, row)]
    for cell in site.cells.mappings(cell0=False):
        for service in hosts.list_services(site.cells.database(cell.uuid), binary="nova-compute"):
            if not service.disabled:
                continue
            closed_by = drains.get(drain_of(service.disabled_reason) or "")
            if closed_by is None or closed_by.state is not DrainState.DONE:
                found.append(Complaint(LOST, f"{service.host} takes no servers: {service.disabled_reason}"))
    return found


def is_half_way(site: Site, drain: Drain, row: DrainServer) -> bool:
    """It ran on a host that died, has left that by the drain's doing, and is on none."""
    if row.state is not DrainServerState.PENDING or row.how is not How.EVACUATE or row.began_at is None:
        return False
    record = look.record(site, row.instance_uuid)
    if record is None or record.host is not None:
        return False
    left = [each for each in journal.of_server(site.api, row.instance_uuid) if each.recipe in (SHELVE, SHELVE_OFFLOAD)]
    began = left[-1].started_at if left else None
    # What began after the drain's end its user asked for.
    return drain.ended_at is None or began is None or began < drain.ended_at


def _unsettled(drain: Drain, row: DrainServer) -> Complaint:
    return Complaint(STUCK, f"{drain.name} is {drain.state}, and server {row.instance_uuid} is {row.state}: {row.why}")
