"""One of two conductors is paused in the middle of moves (SIGSTOP), and woken when the other has taken them over.

All moves of a batch are given to the same conductor: the API's word of them is lost, and it is sent them directly. While each
stands at a point, the process is stopped as a whole: no thread of it runs, no lease is renewed, no message answered. The
other conductor takes the moves over, and the first continues where it was, believing that they are its own: while the other works
on them (``pause``), when it is done (``long-pause``), or when users have confirmed, reverted or deleted their servers since
(``longest-pause``).

Nothing may take effect twice: that is read from what computes and drivers carried out and what services were asked (the
injector counts it), from the journal, and from what `look` sees.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from causeway.compute.host.fence import DONE_ANEW
from causeway.faults.points import call_points, compute_points, rpc_points
from causeway.model.operations import ATTACH_INTERFACE, ATTACH_VOLUME, BUILD, Operation
from causeway.model.sagas import StepPhase, StepState
from causeway.store.api import journal
from tests.faults.clouds.roles_site import CONDUCTORS, RolesSite
from tests.faults.clouds.site import until

ACTIONS = ("pause", "long-pause", "longest-pause")
PAUSED = CONDUCTORS[0]
# A conductor carries these out while it is called.
CALLED = (ATTACH_VOLUME, ATTACH_INTERFACE)
# Longer than the time of two takeovers.
PATIENCE = 15.0
# Longer than a drain takes to request a move, and shorter than a lease: then another conductor would take it.
SOON = 1.0

# Calls that make or change something at a service, and are not made good by being repeated.
CREATING = tuple(
    point
    for point in call_points()
    if point.endswith(".reply")
    and (" POST " in point or " PUT " in point)
    and point.startswith(("call.image", "call.network", "call.volume"))
)
# Asked one after the other, whether hosts reach one another: they change nothing.
QUESTIONS = ("rpc.compute.live_address.request", "rpc.compute.try_live_address.request")
ORDERS = tuple(
    point
    for point in rpc_points()
    if point.startswith("rpc.compute.") and point.endswith(".request") and point not in QUESTIONS
)
# Carried out at every order (`fenced_each_time`): the conductor that takes over asks for the present round again, gets that one,
# and the target fetches only the parts that it does not have. Or anew for each conductor.
REPEATABLE = tuple(
    f"compute.{order}.after" for order in ("begin_round", "receive_round", "send_part", "receive_part", *DONE_ANEW)
)
DONE = (
    *(point for point in compute_points() if point.endswith(".after") and point not in REPEATABLE),
    *(f"driver.{name}.after" for name in ("spawn", "power_on", "export_root_disk", "stash_disks")),
)
# Written down each time, and let through. The API's word of a new move is lost: `pass_on` sends it.
COUNTED: dict[str, Any] = {point: {"delay": 0} for point in (*CREATING, *ORDERS, *DONE)} | {
    "rpc.conductor.run_move.request": "error"
}


@dataclass
class Paused:
    """Moves that stood at a point when their conductor was stopped: move -> epoch then."""

    epochs: dict[str, int]
    is_awake: bool = False
    woken_at: float = 0.0
    late: dict[str, list[str]] = field(default_factory=dict)


def pass_on(site: RolesSite, servers: list[str]) -> None:
    """The conductor that will be paused gets the moves of these servers. A drain requests its moves a little later."""

    def send(uuid: str) -> None:
        move = until(lambda: journal.active_of_server(site.api, uuid), lambda found: found is not None, SOON)
        if move is not None:
            site.run_move(PAUSED, move)

    with ThreadPoolExecutor(4, thread_name_prefix="senders") as senders:
        list(senders.map(send, servers))


def pass_on_newest(site: RolesSite, server: str, passed_on: set[str]) -> None:
    """The same with the operation that works on a server now, unless it is one of ``passed_on`` (ids); it is added there.

    Called again and again: another operation may follow, and without this whoever looks first takes it.
    """
    move = journal.active_of_server(site.api, server)
    if move is not None and move.id not in passed_on:
        passed_on.add(move.id)
        site.run_move(PAUSED, move)


def pause(site: RolesSite, hits: list[dict[str, Any]], rules: dict[str, Any]) -> Paused:
    """Stops the conductor, and waits until the other has what it had. ``rules``: faults from now on."""
    moves = {hit["move"] for hit in hits}
    paused = Paused({move: journal.get(site.api, move).epoch for move in moves})
    conductor = site.deployment.processes[PAUSED]
    conductor.pause()
    # SQLite's lock of a file stays with a process that is stopped, and nobody could do anything.
    while _writes(conductor.pid):
        conductor.resume()
        conductor.pause()
    site.rearm(rules)
    until(lambda: _taken(site, paused), lambda taken: taken == moves, PATIENCE)
    return paused


def _writes(pid: int) -> bool:
    """Whether a process is in the middle of writing to a database: SQLite has a POSIX lock of its file then.

    A conductor has another kind of lock (FLOCK) of its name's file for as long as it lives.
    """
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(words[1] == "POSIX" and words[3:5] == ["WRITE", str(pid)] for words in locks if len(words) > 4)


def _taken(site: RolesSite, paused: Paused) -> set[str]:
    return {move for move, epoch in paused.epochs.items() if journal.get(site.api, move).epoch > epoch}


def wake(site: RolesSite, paused: Paused) -> None:
    """Lets the conductor continue, and waits until it knows that the moves are not its own. Awake already: nothing."""
    if paused.is_awake:
        return
    taken = _taken(site, paused)
    # For an attach the answer says it (409).
    answered = {move for move in taken if journal.get(site.api, move).recipe in CALLED}
    paused.is_awake, paused.woken_at = True, time.time()
    site.deployment.processes[PAUSED].resume()
    lost = answered | until(lambda: site.lost(PAUSED), lambda lost: taken - answered <= lost)
    paused.late = {
        **{move: ["moves: its conductor does not know that it was taken over"] for move in taken - lost},
        **{move: ["moves: it was not taken over"] for move in set(paused.epochs) - taken},
    }


def complaints(site: RolesSite, paused: Paused, uuid: str) -> list[str]:
    """What took effect twice, or too late, of the moves of a server."""
    moves = [move for move in journal.of_server(site.api, uuid) if move.id in paused.epochs]
    return [complaint for move in moves for complaint in _of_move(site, paused, move)]


def _of_move(site: RolesSite, paused: Paused, move: Operation) -> list[str]:
    found = list(paused.late.get(move.id, []))
    hits = [hit for hit in site.hits() if hit["move"] == move.id]
    done = Counter((hit["host"], hit["point"]) for hit in hits if hit["point"] in DONE)
    steps = journal.steps(site.api, move.id)
    is_undone = any(step.phase is StepPhase.UNDO for step in steps)
    is_on_one_host = len({host for host, _point in done}) == 1
    for (host, point), count in done.items():
        # A move that stays on its host and is undone there has made a guest of the new flavor, and then one of the old. A build
        # that is taken over destroys what may be there, and makes the guest anew.
        is_remade = move.recipe == BUILD and point == "driver.spawn.after"
        allowed = 2 if is_remade or (is_undone and is_on_one_host and point.startswith("driver.")) else 1
        if count > allowed:
            found.append(f"moves: {point} {count} times on {host}")
    too_late = [hit["point"] for hit in hits if hit["host"] == PAUSED and hit["at"] > paused.woken_at]
    # The one at which it stood: it could not know. What a service refuses to the user is asked again with our own credentials.
    for kind, allowed in ((CREATING, 2), (ORDERS, 1)):
        asked = [point for point in too_late if point in kind]
        if len(set(asked)) > 1 or len(asked) > allowed:
            found.append(f"moves: after it was woken {PAUSED} asked for {asked}")

    finished = Counter((step.step, step.phase) for step in steps if step.state is StepState.DONE)
    found += [
        f"moves: {phase} of {step} was done {count} times" for (step, phase), count in finished.items() if count > 1
    ]
    before = paused.epochs[move.id]
    epochs = [step.epoch for step in steps]
    if epochs != sorted(epochs) or move.epoch <= before:
        found.append(f"moves: epochs {epochs}, then {move.epoch}")
    if not move.pivoted and not is_undone and move.recipe != "resize":
        found.append("moves: neither pivoted nor undone")
    return found
