"""The storm: servers move between and inside two cells, their users do all sorts of things to them at the same time, and the
whole cloud is killed every few seconds.

Movers resize, confirm, revert, cancel, and delete now and then; users change names, metadata and tags, attach and detach
volumes, plug and unplug ports of the same servers. Every answer goes into a ledger; at the end it is compared with what is
there (see `ledger`), with what a server must be whatever happened (`look`), and with the audit. Then all are deleted, and
nothing may be left.

``python -m tests.faults.storm [--moves 500] [--at-once 50] [--seconds 900]`` prints moves per minute, how many answers there
were, and what became of the servers; exit status 1 if one was lost, something was left over, or an answer was not true. The cloud
is one child process; it gets SIGKILL and is started again.
"""

from __future__ import annotations

import json
import logging
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.console import Console

from causeway.model.sagas import ENDED
from causeway.model.states import VmState
from causeway.store.api import journal

from . import look
from .flows import Flow
from .ledger import EXISTS, Devices, Ledger, is_quiet, new_ledger, untrue
from .site import ChildSite, chunks, until
from .users import boot, call

RESIZES = ("resize", "cross_cell_resize", "same_cell_resize")
# A disk never becomes smaller. Those of gen1 and gen2 are in one cell each, any.medium may go anywhere.
OTHERS = {
    "gen1.small": ("gen2.small", "gen1.large", "any.medium"),
    "gen2.small": ("gen1.large", "any.medium"),
    "gen1.large": ("gen2.small", "any.medium", "host2.medium"),
    "host2.medium": ("gen2.small", "gen1.large"),
    "any.medium": ("gen1.large", "gen2.small"),
}
MOVERS, USERS = 8, 6
# What users change.
CONCERNS = ("name", "metadata", "tag", "volume", "port")
# Seconds for everything to settle when nobody asks for anything any more.
PATIENCE = 90.0
# Seconds between two things that one thread does: a cloud of two cores is not to be measured, but to be broken.
PAUSE = 0.05


@dataclass
class Result:
    moves: int = 0
    rolled_back: int = 0
    crashes: int = 0
    seconds: float = 0.0
    answers: Counter[str] = field(default_factory=Counter)
    lost: dict[str, list[str]] = field(default_factory=dict)
    leaked: dict[str, list[str]] = field(default_factory=dict)
    history: dict[str, list[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        kinds = ("accepted", "refused", "lost")
        counts = [sum(count for name, count in self.answers.items() if name.endswith(kind)) for kind in kinds]
        told = ", ".join(f"{count} {kind}" for count, kind in zip(counts, kinds, strict=True))
        return (
            f"{self.moves} moves settled ({self.rolled_back} rolled back), {len(self.lost)} servers lost or not as answered,"
            f" {len(self.leaked)} leaked; {self.crashes} crashes in {self.seconds:.0f} s:"
            f" {60 * self.moves / self.seconds:.0f} moves per minute. {sum(counts)} answers: {told}."
        )


class Storm:
    """``every``: seconds between crashes, from and to.

    No resize is asked for after ``moves`` of them, or ``seconds``.
    """

    def __init__(
        self,
        site: ChildSite,
        *,
        moves: int,
        at_once: int,
        every: tuple[float, float] = (3.0, 6.0),
        seconds: float = 900.0,
        seed: int = 0,
    ) -> None:
        self.site = site
        self.wanted = moves
        self.at_once = at_once
        self.every = every
        self.limit = seconds
        self.random = random.Random(seed)
        self.result = Result()
        self._ledgers: list[Ledger] = []
        self._asked = 0
        self._counting = threading.Lock()
        self._is_up = threading.Event()
        self._is_over = threading.Event()
        # (server, concern) -> its user: nobody contradicts themselves.
        self._users: dict[tuple[str, str], threading.Lock] = {}

    def run(self) -> Result:
        self._make_servers()
        began = time.monotonic()
        next_crash = began + self.random.uniform(*self.every)
        self._is_up.set()
        with ThreadPoolExecutor(MOVERS + USERS, thread_name_prefix="users") as threads:
            seeds = [self.random.random() for _ in range(MOVERS + USERS)]
            parts = [self._ledgers[number::MOVERS] for number in range(MOVERS)]
            working = [threads.submit(self._move, part, seed) for part, seed in zip(parts, seeds, strict=False) if part]
            working += [threads.submit(self._use, seed) for seed in seeds[MOVERS:]]
            try:
                while not self._is_over.wait(PAUSE):
                    if time.monotonic() > next_crash:
                        self._crash()
                        next_crash = time.monotonic() + self.random.uniform(*self.every)
                    if self._asked >= self.wanted or time.monotonic() - began > self.limit:
                        break
            finally:
                self._is_over.set()
                self._is_up.set()
            for each in working:
                each.result()
        # The last crash strikes moves whose users wait for nothing any more.
        self._crash()
        self._wait()
        self.result.seconds = time.monotonic() - began
        self._count()
        self._look()
        self._end()
        return self.result

    def _make_servers(self) -> None:
        member, network = self.site.member, self.site.network_id
        flows = [Flow("resize", "cross", backing) for backing in ("image", "volume")]
        parts = chunks(list(range(self.at_once)), 10)
        servers = [uuid for number, part in enumerate(parts) for uuid in boot(self.site, flows[number % 2], len(part))]
        for uuid in servers:
            volumes = [member.block_storage.create_volume(size=1, name=f"{number} of {uuid}").id for number in (1, 2)]
            ports = [member.network.create_port(network_id=network).id]
            name = member.compute.get_server(uuid).name
            self._ledgers.append(new_ledger(uuid, name, Devices(tuple(volumes), tuple(ports))))
            for volume in volumes:
                until(
                    lambda volume=volume: member.block_storage.get_volume(volume).status, lambda it: it == "available"
                )  # type: ignore[misc]

    def _crash(self) -> None:
        self._is_up.clear()
        self.site.kill()
        self.site.restart()
        self.result.crashes += 1
        self._is_up.set()

    # movers: each has servers of its own

    def _move(self, mine: list[Ledger], seed: float) -> None:
        dice = random.Random(seed)
        while not self._is_over.wait(PAUSE):
            for ledger in mine:
                self._is_up.wait()
                if self._is_over.is_set():
                    return
                self._next(ledger, dice)

    def _next(self, ledger: Ledger, dice: random.Random) -> None:
        uuid = ledger.uuid
        record = look.record(self.site, uuid)
        if record is None:
            return
        if record.task_state is not None:
            if dice.random() < 0.02:
                self._cancel(ledger)
        elif record.vm_state is VmState.RESIZED:
            operation = "revert" if dice.random() < 0.3 else "confirm"
            self._action(ledger, operation, {f"{operation}Resize": None})
        elif record.vm_state is VmState.ACTIVE:
            flavor = dice.choice(OTHERS[record.flavor.flavorid])
            self._action(ledger, "resize", {"resize": {"flavorRef": flavor}})
            with self._counting:
                self._asked += 1
        if dice.random() < 0.003:
            answer = call(self.site, "DELETE", f"/servers/{uuid}")
            ledger.told(*EXISTS, False, answer)

    def _action(self, ledger: Ledger, operation: str, body: dict[str, object]) -> None:
        ledger.told_of_move(operation, call(self.site, "POST", f"/servers/{ledger.uuid}/action", body))

    def _cancel(self, ledger: Ledger) -> None:
        move = journal.active_of_server(self.site.api, ledger.uuid)
        if move is not None:
            answer = call(self.site, "DELETE", f"/servers/{ledger.uuid}/migrations/{move.migration_uuid}")
            ledger.answers[
                f"cancel {'accepted' if answer.is_accepted else 'lost' if answer.is_lost else 'refused'}"
            ] += 1

    # users: everybody has every server, but one concern of it at a time

    def _use(self, seed: float) -> None:
        dice = random.Random(seed)
        deeds: dict[str, Callable[[Ledger, random.Random], None]] = {
            "name": self._rename,
            "metadata": self._metadata,
            "tag": self._tag,
            "volume": self._volume,
            "port": self._port,
        }
        while not self._is_over.wait(PAUSE):
            self._is_up.wait()
            ledger, concern = dice.choice(self._ledgers), dice.choice(CONCERNS)
            if False in ledger.allowed[EXISTS]:
                continue
            with self._counting:
                lock = self._users.setdefault((ledger.uuid, concern), threading.Lock())
            if lock.acquire(blocking=False):
                try:
                    deeds[concern](ledger, dice)
                finally:
                    lock.release()

    def _tell(self, ledger: Ledger, told: tuple[str, str, object], method: str, path: str, body: object = None) -> None:
        answer = call(self.site, method, f"/servers/{ledger.uuid}{path}", body)
        ledger.told(*told, answer)

    def _rename(self, ledger: Ledger, dice: random.Random) -> None:
        name = f"name{dice.randrange(10**6)}"
        self._tell(ledger, ("name", "", name), "PUT", "", {"server": {"name": name}})

    def _metadata(self, ledger: Ledger, dice: random.Random) -> None:
        key, value = dice.choice("abc"), str(dice.randrange(10**6))
        if dice.random() < 0.25:
            self._tell(ledger, ("metadata", key, None), "DELETE", f"/metadata/{key}")
        else:
            self._tell(ledger, ("metadata", key, value), "PUT", f"/metadata/{key}", {"meta": {key: value}})

    def _tag(self, ledger: Ledger, dice: random.Random) -> None:
        tag = dice.choice(("x", "y", "z"))
        there = dice.random() < 0.6
        self._tell(ledger, ("tag", tag, True if there else None), "PUT" if there else "DELETE", f"/tags/{tag}")

    def _volume(self, ledger: Ledger, dice: random.Random) -> None:
        volume = dice.choice(ledger.devices.volumes)
        if True in ledger.may_be("volume", volume):
            self._tell(ledger, ("volume", volume, None), "DELETE", f"/os-volume_attachments/{volume}")
        else:
            body = {"volumeAttachment": {"volumeId": volume}}
            self._tell(ledger, ("volume", volume, True), "POST", "/os-volume_attachments", body)

    def _port(self, ledger: Ledger, dice: random.Random) -> None:
        port = dice.choice(ledger.devices.ports)
        if True in ledger.may_be("port", port):
            self._tell(ledger, ("port", port, None), "DELETE", f"/os-interface/{port}")
        else:
            self._tell(
                ledger, ("port", port, True), "POST", "/os-interface", {"interfaceAttachment": {"port_id": port}}
            )

    # the end

    def _wait(self) -> None:
        """Until nothing is on its way any more, or nothing has changed for too long."""
        left = list(self._ledgers)
        end = time.monotonic() + PATIENCE
        while left and time.monotonic() < end:
            quiet = [ledger for ledger in left if is_quiet(self.site, ledger)]
            if quiet:
                end = time.monotonic() + PATIENCE
            left = [ledger for ledger in left if ledger not in quiet]
            time.sleep(0.2)
        for ledger in left:
            move = journal.active_of_server(self.site.api, ledger.uuid)
            about = f"{move.recipe} {move.state} {move.error}" if move else "no move"
            self._complain(ledger, [f"not settled: {about}"])

    def _count(self) -> None:
        moves = [move for move in journal.all_moves(self.site.api) if move.recipe in RESIZES]
        self.result.rolled_back = sum(move.state == "failed" for move in moves)
        self.result.moves = sum(move.state in ENDED for move in moves)
        for ledger in self._ledgers:
            self.result.answers.update(ledger.answers)

    def _look(self) -> None:
        for ledger in self._ledgers:
            self._complain(ledger, untrue(self.site, ledger))
        for uuid, disagreements in look.audit(self.site).items():
            self.result.leaked.setdefault(uuid, []).extend(disagreements)

    def _end(self) -> None:
        """All are deleted as their users find them, and leave nothing."""
        for ledger in self._ledgers:
            if look.record(self.site, ledger.uuid) is not None:
                ledger.told(*EXISTS, False, call(self.site, "DELETE", f"/servers/{ledger.uuid}"))
        for ledger in self._ledgers:
            gone = until(lambda uuid=ledger.uuid: look.record(self.site, uuid) is None, bool)  # type: ignore[misc]
            self._complain(ledger, untrue(self.site, ledger) if gone else ["not deleted"], "in the end, ")

    def _complain(self, ledger: Ledger, complaints: list[str], when: str = "") -> None:
        if complaints:
            lost = any(look.is_lost(complaint) for complaint in complaints)
            group = self.result.lost if lost else self.result.leaked
            group.setdefault(ledger.uuid, []).extend(f"{when}{each}" for each in complaints)
            self.result.history[ledger.uuid] = ledger.history


@click.command()
@click.option("--moves", default=500, show_default=True)
@click.option("--at-once", default=50, show_default=True)
@click.option("--seconds", default=900.0, show_default=True, help="After these no new move is asked for.")
@click.option("--seed", default=0, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Keep the state directory, and what was answered, here.")
def main(moves: int, at_once: int, seconds: float, seed: int, keep: Path | None) -> None:
    """Runs the storm and says what became of the servers."""
    console = Console()
    logging.basicConfig(level=logging.CRITICAL)
    directory = keep or Path(tempfile.mkdtemp(prefix="causeway-storm-"))
    try:
        with ChildSite(directory) as site:
            assert isinstance(site, ChildSite)
            result = Storm(site, moves=moves, at_once=at_once, seconds=seconds, seed=seed).run()
        if keep is not None:
            (keep / "answers.json").write_text(json.dumps(result.history, indent=1))
    finally:
        if keep is None:
            shutil.rmtree(directory, ignore_errors=True)
    for kind, servers in (("lost", result.lost), ("leaked", result.leaked)):
        for uuid, complaints in servers.items():
            console.print(f"{kind}: {uuid} {'; '.join(complaints)}", markup=False, highlight=False, soft_wrap=True)
    answers = ", ".join(f"{count} {name}" for name, count in sorted(result.answers.items()))
    console.print(answers, markup=False, highlight=False, soft_wrap=True)
    console.print(str(result), markup=False, highlight=False, soft_wrap=True)
    sys.exit(1 if result.lost or result.leaked else 0)


if __name__ == "__main__":
    main()
