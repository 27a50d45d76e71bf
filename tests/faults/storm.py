"""The storm: servers move back and forth between two cells, many at a time, while the whole cloud crashes every few seconds.

``python -m tests.faults.storm [--moves 500] [--at-once 50]`` prints moves per minute and what became of them; exit status 1
if a server was lost or something was left over. The cloud is one child process; it gets SIGKILL and is started again.
"""

from __future__ import annotations

import logging
import random
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.console import Console

from causeway.model.moves import MOVE_ENDED
from causeway.model.states import VmState
from causeway.store.api import journal

from . import look
from .flows import Flow
from .site import ChildSite, chunks, until
from .users import ask, boot, mark

RESIZES = ("resize", "cross_cell_resize", "same_cell_resize")
# A disk never becomes smaller.
OTHER = {"gen1.small": "gen2.small", "gen2.small": "gen1.large", "gen1.large": "gen2.small"}
# Seconds without any change after which whatever has not settled is lost.
PATIENCE = 60.0


@dataclass
class Result:
    moves: int = 0
    failed: int = 0
    crashes: int = 0
    seconds: float = 0.0
    lost: dict[str, list[str]] = field(default_factory=dict)
    leaked: dict[str, list[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        per_minute = 60 * self.moves / self.seconds
        return (
            f"{self.moves} moves settled ({self.failed} of them given back), {len(self.lost)} servers lost,"
            f" {len(self.leaked)} leaked; {self.crashes} crashes in {self.seconds:.0f} s: {per_minute:.0f} moves per minute"
        )


class Storm:
    """``every``: seconds between crashes, from and to."""

    def __init__(
        self, site: ChildSite, *, moves: int, at_once: int, every: tuple[float, float] = (3.0, 6.0), seed: int = 0
    ) -> None:
        self.site = site
        self.wanted = moves
        self.at_once = at_once
        self.every = every
        self.random = random.Random(seed)
        self.result = Result()

    def run(self) -> Result:
        flow = Flow("resize", "cross", "image")
        servers = [uuid for part in chunks(list(range(self.at_once)), 10) for uuid in boot(self.site, flow, len(part))]
        began = changed = time.monotonic()
        next_crash = began + self.random.uniform(*self.every)
        before = -1
        with ThreadPoolExecutor(8, thread_name_prefix="users") as users:
            while True:
                ended, asked = self._count()
                if ended != before:
                    before, changed = ended, time.monotonic()
                left = max(0, self.wanted - asked)
                idle = [uuid for uuid in servers if look.is_settled(self.site, uuid)]
                resting = [uuid for uuid in idle if not self._waits(uuid)]
                if (not left and len(resting) == len(servers)) or time.monotonic() - changed > PATIENCE:
                    break
                todo = [uuid for uuid in idle if uuid not in resting] + resting[:left]
                list(users.map(self._next, todo))
                if time.monotonic() > next_crash:
                    self.site.kill()
                    self.site.restart()
                    self.result.crashes += 1
                    next_crash = time.monotonic() + self.random.uniform(*self.every)
                time.sleep(0.05)
        self.result.seconds = time.monotonic() - began
        self.result.moves = self._count()[0]
        self._look(servers)
        return self.result

    def _count(self) -> tuple[int, int]:
        """Moves that have ended, and that were asked for."""
        moves = [move for move in journal.all_moves(self.site.api) if move.recipe in RESIZES]
        self.result.failed = sum(move.state == "failed" for move in moves)
        return sum(move.state in MOVE_ENDED for move in moves), len(moves)

    def _waits(self, uuid: str) -> bool:
        record = look.record(self.site, uuid)
        return record is not None and record.vm_state is VmState.RESIZED

    def _next(self, uuid: str) -> None:
        """What the server's user does now. Refusals don't matter: they look again."""
        record = look.record(self.site, uuid)
        if record is None:
            return
        flow = Flow("resize", "cross", "image")
        if record.vm_state is VmState.RESIZED:
            ask(self.site, flow, "revert" if self.random.random() < 0.25 else "confirm", uuid)
        elif record.vm_state is VmState.ACTIVE:
            ask(self.site, flow, "resize", uuid, flavor=OTHER[record.flavor.flavorid])

    def _look(self, servers: list[str]) -> None:
        for uuid in servers:
            until(lambda uuid=uuid: look.is_settled(self.site, uuid), bool, 5)  # type: ignore[misc]
            if not look.is_settled(self.site, uuid):
                self.result.lost[uuid] = ["not settled"]
                continue
            found = look.complaints(self.site, uuid, mark(uuid))
            if any(look.is_lost(complaint) for complaint in found):
                self.result.lost[uuid] = found
            elif found:
                self.result.leaked[uuid] = found
        for uuid, disagreements in look.audit(self.site).items():
            self.result.leaked.setdefault(uuid, []).extend(disagreements)


@click.command()
@click.option("--moves", default=500, show_default=True)
@click.option("--at-once", default=50, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(moves: int, at_once: int, seed: int) -> None:
    """Runs the storm and says what became of the servers."""
    console = Console()
    logging.basicConfig(level=logging.CRITICAL)
    directory = Path(tempfile.mkdtemp(prefix="causeway-storm-"))
    try:
        with ChildSite(directory) as site:
            assert isinstance(site, ChildSite)
            result = Storm(site, moves=moves, at_once=at_once, seed=seed).run()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    for kind, servers in (("lost", result.lost), ("leaked", result.leaked)):
        for uuid, complaints in servers.items():
            console.print(f"{kind}: {uuid} {'; '.join(complaints)}", markup=False, highlight=False, soft_wrap=True)
    console.print(str(result), markup=False, highlight=False, soft_wrap=True)
    sys.exit(1 if result.lost or result.leaked or result.moves < moves else 0)


if __name__ == "__main__":
    main()
