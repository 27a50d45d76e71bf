"""The last chapter: cell1 must be empty, and is deleted.

One server can't go, which is fixed; one waits, as its owner asked.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from causeway.cli.demo.chapter import NETWORK, MoveFailed, Traveller, cell_of
from causeway.cli.demo.client import ADMIN, execute
from causeway.cli.demo.picture import pictures_of
from causeway.cli.demo.rescuing import RescuingChapter
from causeway.cli.demo.ticks import Tick
from causeway.cli.demo.watch import TIMEOUT, Timeout

HOLD = "causeway:hold"
DRAIN, FLAVOR, NAME = "empty-cell1", "any.small", "story-leaves"
_ON_THE_WAY = ("pending", "asked", "confirming", "blocked")
_RUNS = ("running", "paused")


class EmptyingChapter(RescuingChapter):
    """Its part of the story."""

    def _empty(self, image: str, ticking: list[str], known: list[Traveller]) -> None:
        """``ticking``: options with which a guest ticks; ``known``: the servers that there are."""
        screen, check = self._screen, self._screen.check
        self._end_drains()
        stuck = next(server for server in known if cell_of(server.host) == "cell1" and self._is_tied(server))
        there = [server for server in known if cell_of(server.host) == "cell1"]
        leaving = self._cloud.leaving
        there += self._boot_many(["--image", image, *ticking], leaving - len(there))
        patient = there[-1]
        until = (datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._client.run("server", "set", "--property", f"{HOLD}={until}", patient.name)

        plan = self._client.json("drain", "plan", "--cell", "cell1", cloud=ADMIN)
        planned = {one["instance_uuid"]: one for one in plan["servers"]}
        check("the plan knows all of them", set(planned) == {server.id for server in there}, f"{len(planned)} servers")
        ways = Counter(one["how"] or "can't go" for one in planned.values())
        screen.note(", ".join(f"{count} {way}" for way, count in sorted(ways.items())))
        refusals = {one["instance_uuid"]: one for one in planned.values() if one["state"] == "blocked"}
        check("one can't go", set(refusals) == {stuck.id}, ", ".join(one["name"] for one in refusals.values()))
        for one in refusals.values():
            screen.note(f"{one['name']}: {one['why']} {one['help'] or ''}")
        check("one waits, as its owner asked", planned[patient.id]["not_before"] is not None, patient.name)
        screen.note(plan["summary"])

        words = [
            "--cell",
            "cell1",
            "--flavor",
            "gen1.small=gen2.small",
            "--reason",
            "The hardware of cell1 is returned.",
        ]
        made = self._client.json("drain", "create", *words, DRAIN, cloud=ADMIN)
        check("with another flavor for it all can go", not made["plan_shortages"], made["plan_summary"])
        drain_id = made["id"]
        ticks = {server.id: self._tick(server, None) for server in there if server is not stuck}
        began = time.monotonic()
        self._client.run("drain", "start", DRAIN, cloud=ADMIN)
        console = self._cloud.console()
        self._wait(drain_id, lambda shown: shown["progress"]["servers"].get("done", 0) >= leaving // 2)
        if console is not None:
            pages = {"/": "console-cells.png", f"/drains/{drain_id}": "console-drain.png"}
            folder = self._cloud.state.path
            titles = pictures_of(console, {page: folder / name for page, name in pages.items()}, screen)
            if titles:
                check(
                    "the console shows cells and the drain",
                    DRAIN in titles[1],
                    f"{', '.join(pages.values())} in {folder}",
                )
        self._wait(drain_id, lambda shown: sum(shown["progress"]["servers"].get(one, 0) for one in _ON_THE_WAY) <= 1)
        check("the one that is to wait is where it was", cell_of(self._host_of(patient)) == "cell1", patient.host)
        self._client.run("server", "unset", "--property", HOLD, patient.name)
        shown = self._wait(drain_id, lambda shown: shown["state"] != "running")
        counts = shown["progress"]["servers"]
        check("the drain is done, and all have gone", (shown["state"], counts.get("done")) == ("done", leaving), counts)
        screen.note(f"in {time.monotonic() - began:.0f} s, with {counts}")
        self._look_at_all(there, stuck, began)
        self._look_inside(there, ticks)
        self._roll_back(drain_id)

    def _reopen(self) -> None:
        """Cancels the drain of an earlier run that was interrupted, and opens the hosts that this run left closed."""
        for one in self._drains():
            if one["State"] in _RUNS:
                self._client.run("drain", "cancel", one["ID"], cloud=ADMIN)
        services = self._admin.compute.services(binary="nova-compute")
        for host in sorted(service.host for service in services if service.status == "disabled"):
            self._client.run("compute", "service", "set", "--enable", host, "nova-compute", cloud=ADMIN)

    def _end_drains(self) -> None:
        """Deletes the drains of earlier runs."""
        for one in self._drains():
            self._client.run("drain", "delete", one["ID"], cloud=ADMIN)

    def _drains(self) -> list[dict[str, Any]]:
        """Those of the demonstration, also of earlier runs, as the `openstack` client lists them."""
        return [one for one in self._client.json("drain", "list", cloud=ADMIN) if one["Name"] == DRAIN]

    def _is_tied(self, server: Traveller) -> bool:
        return "gen1.small" in str(server.shown["flavor"])

    def _boot_many(self, options: list[str], count: int) -> list[Traveller]:
        """Boots servers in cell1; the hosts of other cells are disabled meanwhile."""
        others = sorted(host for host in self._providers if cell_of(host) != "cell1")
        try:
            for host in others:
                self._client.run("compute", "service", "set", "--disable", host, "nova-compute", cloud=ADMIN)
            words = ["--flavor", FLAVOR, "--network", NETWORK, *options, "--min", str(count), "--max", str(count)]
            self._client.run("server", "create", *words, "--wait", NAME)
            # The client has waited for the first one only.
            compute = self._admin.compute
            made = compute.servers(all_projects=True, name=f"^{NAME}-")
            found = [compute.wait_for_server(server, wait=TIMEOUT) for server in made]
        finally:
            for host in others:
                self._client.run("compute", "service", "set", "--enable", host, "nova-compute", cloud=ADMIN)
        booted = [self._booted(server) for server in sorted(found, key=lambda server: server.name)]
        self._screen.check(
            "they run in cell1", {cell_of(server.host) for server in booted} == {"cell1"}, f"{len(booted)} servers"
        )
        return booted

    def _booted(self, shown: Any) -> Traveller:
        """Waits until its guest can be heard."""
        server = Traveller(shown.name, "", id=shown.id, host=shown.compute_host)
        server.shown = {"addresses": {NETWORK: [each["addr"] for each in shown.addresses[NETWORK]]}}
        if self._observer is not None:
            with self._screen.working(f"{server.name} begins to tick"):
                self._observer.wait_for(server.address, 0.0, TIMEOUT)
        return server

    def _wait(self, drain_id: str, is_there: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end, pause = time.monotonic() + 4 * TIMEOUT, threading.Event()
        with self._screen.working("cell1 is emptied") as status:
            while True:
                path = f"/os-causeway/drains/{drain_id}"
                shown: dict[str, Any] = self._admin.compute.get(path).json()["drain"]
                if shown["state"] in ("paused", "cancelled"):
                    raise MoveFailed(f"The drain is {shown['state']}: {shown['note']}")
                if is_there(shown):
                    return shown
                counts = ", ".join(f"{count} {state}" for state, count in shown["progress"]["servers"].items() if count)
                status.update(f"cell1 is emptied: {counts}. {shown['note'] or ''}")
                if time.monotonic() >= end:
                    raise Timeout(
                        f"The drain did not come that far: {shown['state']}, {shown['progress']}, {shown['note']}"
                    )
                pause.wait(0.5)

    def _host_of(self, server: Traveller) -> str:
        server.host = self._admin.compute.get_server(server.id).compute_host
        return server.host

    def _look_at_all(self, servers: list[Traveller], resized: Traveller, began: float) -> None:
        check, silences = self._screen.check, {}
        for server in servers:
            self._host_of(server)
            if server is not resized and (silence := self._heard(server, began)) is not None:
                silences[server.name] = silence.seconds
        check(
            "all of them are in cell2",
            {cell_of(server.host) for server in servers} == {"cell2"},
            f"{len(servers)} servers",
        )
        if silences:
            self._screen.note(
                ", ".join(f"{name} was not heard for {silent:.1f} s" for name, silent in silences.items())
            )
        flavor = str(self._show(resized)["flavor"])
        check(f"{resized.name} has the flavor of the new hardware", "gen2.small" in flavor)
        left = [server.name for server in servers if self._traces(server).records("cell1")]
        check("no records of them in the database of cell1", not left, ", ".join(left))
        guests = {server.name: len(self._traces(server).guests()) for server in servers}
        check("exactly one guest of each runs", set(guests.values()) == {1}, guests)

    def _look_inside(self, servers: list[Traveller], before: dict[str, Tick | None]) -> None:
        """``before``: the last tick of each that did not have to boot, by its server's id."""
        wrong: list[str] = []
        heard = [(server, tick) for server in servers if (tick := before.get(server.id)) is not None]
        for server, tick in heard:
            now = self._tick(server, tick)
            assert now is not None
            if now.id != tick.id:
                wrong.append(f"{server.name} booted")
            elif (now.memory, now.disk, now.lines) != ("kept", "kept", now.n):
                wrong.append(f"{server.name}: memory {now.memory}, disk {now.disk}, {now.lines} of {now.n} lines")
        if heard:
            claim = "all of them continued as they were, with what they had in memory and on disk"
            self._screen.check(claim, not wrong, "; ".join(wrong) or f"{len(heard)} guests")

    def _roll_back(self, drain_id: str) -> None:
        check, state = self._screen.check, self._cloud.state
        report = state.path / "drain.html"
        environment = os.environ | {"OS_CLIENT_CONFIG_FILE": str(state.clouds)}
        words = [
            "causeway",
            "drain",
            "report",
            drain_id,
            "--format",
            "html",
            "--output",
            str(report),
            "--os-cloud",
            ADMIN,
        ]
        self._screen.command(words)
        execute(words, self._screen, environment)
        check("the report is written", "<svg" in report.read_text(), str(report))
        words = ["causeway", "manage", "cell", "delete", *self._cloud.manage(), "cell1"]
        self._screen.command(words)
        self._screen.note(execute(words, self._screen, environment).strip())
        cells = {one["Name"] for one in self._client.json("cell", "list", cloud=ADMIN)}
        check("there is no cell1 any more", "cell1" not in cells, ", ".join(sorted(cells)))
