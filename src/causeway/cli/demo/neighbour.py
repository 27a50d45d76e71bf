"""The chapters of live migrations: to another host of its cell, and to another cell, where hypervisors may not reach it."""

from __future__ import annotations

import threading
import time
from typing import Any

from causeway.cli.demo.chapter import Chapter, Traveller, cell_of, path_of
from causeway.cli.demo.client import ADMIN
from causeway.cli.demo.guest import GuestReport, last_report
from causeway.cli.demo.ticks import Tick, last_tick
from causeway.cli.demo.watch import MICROVERSION, TIMEOUT, Timeout


class NeighbourChapter(Chapter):
    """Its part of the story."""

    def _neighbour(self, server: Traveller) -> str | None:
        """Another host of the server's cell; None if there is none."""
        cell = cell_of(server.host)
        return next((host for host in sorted(self._providers) if cell_of(host) == cell and host != server.host), None)

    def _elsewhere(self, server: Traveller) -> str:
        """A host of another cell."""
        return next(host for host in sorted(self._providers) if cell_of(host) != cell_of(server.host))

    def _migrate_live(self, server: Traveller, target: str) -> None:
        check, left = self._screen.check, server.host
        before, tick = last_report(self._said(server)).boot, self._tick(server, None)
        words = ("migrate", "--live-migration", "--host", target, server.id, "--os-compute-api-version", MICROVERSION)
        began, received = time.monotonic(), self._cloud.bytes_received(target)
        watch = self._watched(server, set(), words, cloud=ADMIN)
        check("status went MIGRATING -> ACTIVE", watch.statuses == ["ACTIVE", "MIGRATING", "ACTIVE"], path_of(watch))
        self._listed_once(watch)
        migration = self._ended(server)
        check("the migration is completed", migration["status"] == "completed", migration["status"])
        shown = self._arrived(server, cell_of(target))
        check(f"it runs on {target}", server.host == target, server.host)
        silence = self._heard(server, began)
        if silence is not None:
            # No check: guests are emulated, on machines and disks that do much else.
            self._screen.note(f"outside it was {silence}")
            now = self._cloud.bytes_received(target)
            server.journeys[-1].received = now - received if now is not None and received is not None else None
        if tick is not None:
            self._check_continued(server, tick)
        else:
            # The console of its new host may begin when it came.
            boot = last_report(self._said(server)).boot
            check("its guest did not boot", boot in (0, before), f"boot {boot or before}")
        self._answers(server, GuestReport(ip=server.address))
        for name in ("id", "addresses", "tags", "properties", "volumes_attached", "flavor"):
            check(f"same {name}", shown[name] == server.shown[name])
        newest = self._events(server)[0]["Action"]
        check("its history continued", newest == "live-migration", newest)
        self._nothing_at(server, self._traces(server), left)

    def _check_continued(self, server: Traveller, before: Tick) -> None:
        """Checks that the guest did not boot, and has all that it had in its memory and on its disk."""
        check, now = self._screen.check, self._tick(server, before)
        assert now is not None
        check("its guest is the same boot, which continued", now.id == before.id and now.n > before.n, f"tick {now.n}")
        check("what was in its memory is there", now.memory == "kept", now.memory)
        check("what was on its disk is there", now.disk == "kept", now.disk)
        check("every line that it wrote meanwhile is on the disk", now.lines == now.n, f"{now.lines} lines")

    def _said(self, server: Traveller) -> str:
        wanted: dict[str, Any] = {"os-getConsoleOutput": {}}
        answer = self._user.compute.post(f"/servers/{server.id}/action", json=wanted, microversion=MICROVERSION)
        return str(answer.json()["output"]) if answer.ok else ""

    def _tick(self, server: Traveller, after: Tick | None) -> Tick | None:
        """The last tick on its console, of another boot or later than ``after``; None if nobody can hear guests here."""
        if self._observer is None:
            return None
        deadline, pause = time.monotonic() + TIMEOUT, threading.Event()
        while time.monotonic() < deadline:
            tick = last_tick(self._said(server))
            if tick is not None and (after is None or tick.id != after.id or tick.n > after.n + 1):
                return tick
            pause.wait(0.25)
        raise Timeout(f"The guest of server {server.id} wrote no tick to its console within {TIMEOUT:.0f} s.")

    def _ended(self, server: Traveller) -> dict[str, Any]:
        """Its last migration, once that is over: the source is cleaned up after the guest has arrived."""
        path = f"/os-migrations?instance_uuid={server.id}&migration_type=live-migration"
        deadline, pause = time.monotonic() + TIMEOUT, threading.Event()
        while time.monotonic() < deadline:
            newest: dict[str, Any] = self._admin.compute.get(path, microversion="2.59").json()["migrations"][0]
            if newest["status"] in ("completed", "failed", "error", "cancelled"):
                return newest
            pause.wait(0.25)
        raise Timeout(f"The live migration of server {server.id} did not end within {TIMEOUT:.0f} s.")
