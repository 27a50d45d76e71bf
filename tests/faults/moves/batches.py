"""One batch of the matrix: several faults at once, each on a server of its own, and what became of all of them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from causeway.store.api import journal, wanted_operations
from tests.faults.cases import FORWARD, REFUSED, ROLLED_BACK, UNDONE, Case
from tests.faults.clouds import killed_services, paused
from tests.faults.clouds.roles_site import RolesSite
from tests.faults.clouds.site import OPTIONS, ChildSite, LocalSite, Site, until
from tests.faults.moves import look
from tests.faults.moves.flows import Flow
from tests.faults.moves.users import ask, delete_ports, mark, prepare

LONG = 3600
# Seconds without anything new after which what was not reached is not on the way. Longer than `vif_plugging_timeout`.
QUIET = 5.0
# Seconds for a delete while one of two conductors stands.
SLOW = 40.0
# Seconds within which a conductor that was paused undoes what it did too late.
LATE = 10.0
RULES: dict[str, dict[str, Any]] = {
    "error": {"error": True},
    "crash": {"delay": LONG},
    "cancel": {"delay": LONG},
    "power-cut": {"delay": LONG},
    "hang": {"hang": 2 * OPTIONS["moves"]["lease"]},
    "pause": {"delay": LONG, "host": paused.PAUSED},
    "long-pause": {"delay": LONG, "host": paused.PAUSED},
    "longest-pause": {"delay": LONG, "host": paused.PAUSED},
}


def run_batch(site: Site, flow: Flow, action: str, points: list[str]) -> list[Case[Flow]]:
    cases = {point: Case(flow, action, point) for point in points}
    servers = prepare(site, flow, len(points))
    spoiled = flow.rules
    rules = spoiled
    if action == killed_services.ACTION:
        assert isinstance(site, RolesSite)
        killed_services.discard_hits(site)
        killed_services.arm(site, points)
    else:
        rules = spoiled | {point: RULES[action] | {"times": 1} for point in points}
    paused_moves: paused.Paused | None = None
    site.arm((paused.COUNTED if action in paused.ACTIONS else {}) | rules)
    with ThreadPoolExecutor(len(servers), thread_name_prefix="users") as users:
        asked = [users.submit(ask, site, flow, flow.operation, uuid) for uuid in servers]
        if action in ("crash", "cancel", "power-cut"):
            assert isinstance(site, ChildSite)
            wait_at_points(site, set(points))
            hits = site.hits()
            site.kill()
            site.disarm()
            if action == "cancel":
                _cancel(site, servers)
            site.restart()
        if action == killed_services.ACTION:
            assert isinstance(site, RolesSite)
            hits = killed_services.kill(site, points)
        answers = {uuid: each.result() for uuid, each in zip(servers, asked, strict=True)}
        if action in paused.ACTIONS:
            assert isinstance(site, RolesSite)
            paused.pass_on(site, servers)
            wait_at_points(site, set(points))
            hits = [hit for hit in site.hits() if hit["point"] in cases]
            paused_moves = paused.pause(site, hits, paused.COUNTED | spoiled)
            if action == "pause":
                paused.wake(site, paused_moves)
    found: dict[str, list[str]] = {uuid: [] for uuid in servers}
    for uuid in wait_until_settled(site, servers):
        found[uuid].append(f"not settled: {unsettled(site, uuid)}")
    if isinstance(site, LocalSite):
        # Who was too slow has learnt of it, too.
        assert until(site.is_idle, bool)
        hits = site.hits()
    done = {uuid: look.is_done(site, flow.operation, uuid) for uuid in servers}
    deleted: list[str] = []
    if action == "longest-pause":
        assert isinstance(site, RolesSite)
        # What kept the moves from their end does not keep users from what they request then.
        site.rearm(paused.COUNTED)
        deleted = request_more(site, flow, servers, found)
    if isinstance(site, RolesSite) and paused_moves is not None:
        paused.wake(site, paused_moves)
        for uuid in servers:
            found[uuid] += paused.complaints(site, paused_moves, uuid)
    site.disarm()
    ends = {}
    for uuid in servers:
        found[uuid] += _complaints(site, uuid) if uuid not in deleted else _remains(site, uuid)
        if done[uuid] and answers[uuid].is_refused:
            found[uuid].append(f"answered with {answers[uuid].status}, and done: {answers[uuid].text}")
        ends[uuid] = end_of(flow, done[uuid], answers[uuid].is_refused, is_cancelled=action == "cancel")
    audit(site, found)
    finish(site, flow, [uuid for uuid in servers if uuid not in deleted], found)
    audit(site, found)
    by_request = {move.request_id: uuid for uuid in servers for move in journal.of_server(site.api, uuid)}
    by_move = {move.id: uuid for uuid in servers for move in journal.of_server(site.api, uuid)}
    for hit in hits:
        if hit["point"] in cases:
            case = cases[hit["point"]]
            case.reached = True
            concerned = by_move.get(hit["move"]) or by_request.get(hit["request"])
            texts = found[concerned] if concerned else [each for complaints in found.values() for each in complaints]
            case.complain(look.rated(texts))
            # Of what is done for all servers alike nobody knows whose fault it was; each of them stands for it.
            case.end = ends[concerned] if concerned else _worst(ends)
    unexplained = [each for each in found.values() if each]
    if unexplained and not any(case.complaints for case in cases.values()):
        next(iter(cases.values())).complain(look.rated(complaint for each in unexplained for complaint in each))
    return list(cases.values())


def _complaints(site: Site, uuid: str) -> list[str]:
    """Of a server that is settled. A conductor in another process may undo after the move's end what it did too late."""
    if not isinstance(site, RolesSite):
        return look.complaints(site, uuid, mark(uuid))
    found: list[str] = until(lambda: look.complaints(site, uuid, mark(uuid)), lambda seen: not seen, LATE)
    return found


def _remains(site: Site, uuid: str) -> list[str]:
    """Of a server that was deleted while a conductor of its move was paused, which undoes then what it did too late."""
    found: list[str] = until(lambda: look.remains(site, uuid), lambda seen: not seen, LATE)
    return [f"left after it was deleted: {each}" for each in found]


def _cancel(site: Site, servers: list[str]) -> None:
    """Cancels the moves that have not passed their pivots, while nobody works on them."""
    for uuid in servers:
        move = journal.active_of_server(site.api, uuid)
        if move is not None:
            wanted_operations.request_cancel(site.api, move.migration_uuid)


def end_of(flow: Flow, done: bool, refused: bool, *, is_cancelled: bool = False) -> str:
    if done:
        return FORWARD
    if refused:
        return REFUSED
    return UNDONE if flow.spoiled_by or is_cancelled else ROLLED_BACK


def _worst(ends: dict[str, str]) -> str:
    return next(end for end in (ROLLED_BACK, REFUSED, UNDONE, FORWARD) if end in ends.values())


def audit(site: Site, found: dict[str, list[str]]) -> None:
    # What an earlier batch left is not held against this one.
    known: set[str] = site.__dict__.setdefault("disagreements", set())
    for uuid, disagreements in look.audit(site).items():
        fresh = [each for each in disagreements if each not in known]
        known.update(fresh)
        for each in fresh:
            named = [concerned for concerned in found if concerned == uuid or concerned in each]
            for concerned in named or list(found):
                found[concerned].append(each)


def wait_at_points(site: Site, wanted: set[str]) -> None:
    """Until every point is taken, or nothing has happened for a while."""
    last, since = 0, time.monotonic()
    while time.monotonic() - since < QUIET:
        taken = {hit["point"] for hit in site.hits()} & wanted
        if taken == wanted:
            return
        if len(taken) > last:
            last, since = len(taken), time.monotonic()
        time.sleep(0.02)


def wait_until_settled(site: Site, servers: list[str]) -> list[str]:
    """Those that are not, when patience is at its end."""

    def left() -> list[str]:
        return [uuid for uuid in servers if not look.is_settled(site, uuid)]

    found: list[str] = until(left, lambda seen: not seen)
    return found


def unsettled(site: Site, uuid: str) -> str:
    move = journal.active_of_server(site.api, uuid)
    return (
        f"{move.recipe} {move.state} {move.error} {move.owner}" if move else f"no move, but {look.record(site, uuid)}"
    )


def request_more(site: Site, flow: Flow, servers: list[str], found: dict[str, list[str]]) -> list[str]:
    """Users delete every third server, and confirm or revert what waits for that. Returns the deleted ones."""
    deleted = servers[::3]
    # While one of two conductors stands, each call that is for it takes as long as its timeout.
    delete(site, deleted, found, patience=SLOW)
    confirm_or_revert(site, flow, [uuid for uuid in servers if uuid not in deleted], found)
    return deleted


def finish(site: Site, flow: Flow, servers: list[str], found: dict[str, list[str]]) -> None:
    """The servers can be used: what waits is confirmed or reverted, all are deleted, and nothing is left."""
    confirm_or_revert(site, flow, servers, found)
    delete(site, servers, found)
    delete_ports(site)


def confirm_or_revert(site: Site, flow: Flow, servers: list[str], found: dict[str, list[str]]) -> None:
    """One after the other, of those that wait for it; notes what is wrong with them afterwards."""
    waiting = [uuid for uuid in servers if site.admin.compute.get_server(uuid).status == "VERIFY_RESIZE"]
    for number, uuid in enumerate(waiting):
        refusal = ask(site, flow, ("confirm", "revert")[number % 2], uuid)
        if not refusal.is_accepted:
            found[uuid].append(f"not to be confirmed or reverted: {refusal.text}")
    for uuid in waiting:
        until(lambda uuid=uuid: look.is_settled(site, uuid), bool)  # type: ignore[misc]
        found[uuid] += [f"afterwards, {each}" for each in look.complaints(site, uuid, mark(uuid))]


def delete(site: Site, servers: list[str], found: dict[str, list[str]], patience: float = 15.0) -> None:
    """Deletes servers; notes what is left of them."""
    for uuid in servers:
        site.admin.compute.delete_server(uuid)
    for uuid in servers:
        there = until(lambda uuid=uuid: look.record(site, uuid), lambda record: record is None, patience)  # type: ignore[misc]
        if there is not None:
            found[uuid].append(f"not deleted: {there.vm_state} {there.task_state}")
        found[uuid] += [f"left after it was deleted: {each}" for each in look.remains(site, uuid)]
