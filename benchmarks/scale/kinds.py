"""Moves of every kind between simulated hosts: warm, live and near-live, of guests that write all the time, over slow links."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.scale.deployment import Deployment, until
from benchmarks.scale.measure import Client, Times, Watch
from causeway.virt.simulated.host_files import guest_of

KINDS = ("warm", "live", "near-live")


@dataclass
class Kind:
    """Moves of one kind that ended. ``seconds``: until it was through; ``pauses``: for which the guest did nothing."""

    seconds: Times = field(default_factory=Times)
    pauses: Times = field(default_factory=Times)
    failed: int = 0


def mixed(
    deployment: Deployment, clients: Callable[[], Client], servers: list[str], seconds: float, shares: dict[str, int]
) -> dict[str, Kind]:
    """All servers move again and again for so long; of which kind each move is follows from the server, and from the shares."""
    watch, found = Watch(deployment), {kind: Kind() for kind in KINDS if shares.get(kind)}
    lock = threading.Lock()
    over = time.perf_counter() + seconds

    def one(server: str) -> None:
        mover = _Mover(deployment, clients(), watch, server)
        chances = random.Random(server)
        while not watch.is_over and time.perf_counter() < over:
            kind = chances.choices(list(found), [shares[kind] for kind in found])[0]
            began = time.perf_counter()
            is_done = mover.move(kind)
            took, pause = time.perf_counter() - began, mover.pause()
            with lock:
                if not is_done:
                    found[kind].failed += 1
                    continue
                found[kind].seconds.seconds.append(took)
                if pause is not None:
                    found[kind].pauses.seconds.append(pause)
            mover.settle(kind)

    watch.while_users(one, servers)
    return found


class _Mover:
    """One server and who moves it."""

    def __init__(self, deployment: Deployment, client: Client, watch: Watch, server: str) -> None:
        self._deployment, self._client, self._watch, self._server = deployment, client, watch, server
        self._ended = 0

    def move(self, kind: str) -> bool:
        """Whether it got there."""
        before = self._host()
        there = None if kind == "live" else self._elsewhere(before)
        if kind == "warm":
            self._act({"migrate": {"host": there}})
        else:
            self._act({"os-migrateLive": {"host": there, "block_migration": "auto"}})
        return self._host() != before

    def settle(self, kind: str) -> None:
        if kind == "warm":
            self._act({"confirmResize": None})

    def pause(self) -> float | None:
        """Seconds for which its guest did nothing, as the guest knows."""
        path = self._deployment.directory / "hosts" / self._host() / "guests" / f"{self._server}.json"
        guest = guest_of(path)
        return None if guest is None else guest.stood_still

    def _act(self, action: dict[str, Any]) -> None:
        self._client.call("POST", f"/servers/{self._server}/action", action)
        self._watch.wait(self._server, self._ended)
        self._ended += 1
        # What has ended may have something follow it.
        until(lambda: self._show()["OS-EXT-STS:task_state"] is None, f"server {self._server} to have no task")

    def _show(self) -> Any:
        return self._client.call("GET", f"/servers/{self._server}")["server"]

    def _host(self) -> str:
        host: str = self._show()["OS-EXT-SRV-ATTR:host"]
        return host

    def _elsewhere(self, host: str) -> str:
        """A host of another cell."""
        deployment = self._deployment
        cells = [deployment.computes[name] for name, cell in deployment.cells.items() if host not in cell.nodes]
        return random.choice(random.choice(cells))
