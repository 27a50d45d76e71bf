"""What the chapters of the story have in common: how they ask, look, watch and check."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from causeway.cli.demo.client import ADMIN, USER, Client
from causeway.cli.demo.cloud import Cloud
from causeway.cli.demo.evidence import Traces
from causeway.cli.demo.guest import GuestReport
from causeway.cli.demo.screen import Screen
from causeway.cli.demo.watch import TIMEOUT, Watch, connect, guest_report
from causeway.virt.lab.observer import Observer, Silence

NETWORK = "story-net"
SIZES = {"gen1.small": (1, 128), "gen2.small": (2, 192), "any.small": (1, 128)}


class MoveFailed(Exception):
    """A server did not get to where it should be."""


@dataclass
class Journey:
    """``silent``: seconds without a sign of the guest; ``received``: bytes that its target received, if they were counted."""

    silent: float
    received: int | None = None


@dataclass
class Traveller:
    """One of the story's servers, with what was seen of it before it moved. ``host`` is where it is now."""

    name: str
    volume: str
    id: str = ""
    volume_id: str = ""
    host: str = ""
    #: when its last move was asked for, by `time.monotonic`
    left_at: float = 0.0
    at_first: GuestReport = field(default_factory=GuestReport)
    on_target: GuestReport = field(default_factory=GuestReport)
    shown: dict[str, Any] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)
    #: its moves as they were seen from outside
    journeys: list[Journey] = field(default_factory=list)

    @property
    def address(self) -> str:
        address: str = self.shown["addresses"][NETWORK][0]
        return address


def cell_of(host: str) -> str:
    return host.partition("-")[0]


class Chapter:
    """What all chapters use. Checks go to the screen; a chapter that can't continue raises."""

    def __init__(self, cloud: Cloud, screen: Screen) -> None:
        self._cloud = cloud
        self._screen = screen
        self._client = Client(screen, cloud.state.clouds)
        self._user = connect(cloud.state.clouds, USER)
        self._admin = connect(cloud.state.clouds, ADMIN)
        self._network_id = ""
        self._providers: dict[str, str] = {}
        #: hears the guests tick; None where nobody can
        self._observer: Observer | None = None

    def _watched(self, server: Traveller, until: set[str], words: tuple[str, ...], cloud: str = USER) -> Watch:
        """Runs a command, and follows the server's status until it is one of ``until`` (empty: the first one again).

        Raises MoveFailed if it ends with another status.
        """
        began = time.monotonic()
        with (
            self._screen.working(f"{server.name} moves") as status,
            Watch(self._user.compute, server.id, until, lambda path: status.update(f"{server.name}: {path}")) as watch,
        ):
            self._client.run("server", *words, cloud=cloud)
        if watch.statuses[-1] not in (until or {watch.statuses[0]}):
            fault = self._show(server).get("fault") or {}
            raise MoveFailed(f"{path_of(watch)}: {fault.get('message', 'no fault is recorded')}")
        self._screen.note(f"{path_of(watch)} in {time.monotonic() - began:.1f} s, the client's own start included")
        return watch

    def _listed_once(self, watch: Watch) -> None:
        self._screen.check(
            "it was listed exactly once all the time", watch.counts == {1}, f"the list was asked {watch.polls} times"
        )

    def _console(self, server: Traveller, after_boot: int) -> GuestReport:
        with self._screen.working("The guest boots"):
            report = guest_report(self._user.compute, server.id, after_boot)
        console = self._client.run("console", "log", "show", server.name)
        for line in console.splitlines()[-12:]:
            if line.startswith(("CAUSEWAY-GUEST", "CAUSEWAY-MARKER")):
                self._screen.note(line.strip())
        return report

    def _show(self, server: Traveller) -> dict[str, Any]:
        shown: dict[str, Any] = self._client.json("server", "show", server.id, cloud=ADMIN)
        return shown

    def _events(self, server: Traveller) -> list[dict[str, Any]]:
        """The server's events, newest first."""
        events: list[dict[str, Any]] = self._client.json("server", "event", "list", server.id)
        return events

    def _has_flavor(self, report: GuestReport, flavor: str) -> None:
        vcpus, memory_mb = SIZES[flavor]
        self._screen.check(
            f"the guest has the size of {flavor}",
            (report.vcpus, report.memory_mb) == (vcpus, memory_mb),
            f"{report.vcpus} vCPU, {report.memory_mb} MB",
        )

    def _answers(self, server: Traveller, report: GuestReport) -> None:
        address = server.address
        if not self._cloud.real:
            self._screen.check(
                "the guest has the port's address (simulated: there is nothing to ping)", report.ip == address
            )
            return
        answer = self._cloud.ping(self._network_id, address)
        claim = f"it answers ping on {address}"
        self._screen.check(claim, answer.answered, f"{answer.received} of {answer.sent}, {answer.round_trip_ms} ms")

    def _arrived(self, server: Traveller, cell: str | None, again: str = "") -> dict[str, Any]:
        """Checks that the server runs in a cell (None: any one); returns it as the API shows it."""
        shown = self._show(server)
        server.host = shown["OS-EXT-SRV-ATTR:host"]
        cell = cell or cell_of(server.host)
        self._screen.check(f"it runs in {cell}{again}", cell_of(server.host) == cell, server.host)
        return shown

    def _heard(self, server: Traveller, began: float) -> Silence | None:
        """Waits until the server is heard again. Returns how long it was silent since ``began``; None if nobody listens."""
        if self._observer is None:
            return None
        with self._screen.working(f"{server.name} is listened to"):
            self._observer.wait_for(server.address, time.monotonic(), TIMEOUT)
        silence = self._observer.silence(server.address, began)
        server.journeys.append(Journey(silence.seconds))
        return silence

    def _traces(self, server: Traveller) -> Traces:
        path = f"/os-migrations?instance_uuid={server.id}"
        migrations = self._admin.compute.get(path, microversion="2.59").json()["migrations"]
        return Traces(self._cloud, self._admin, server.id, [one["uuid"] for one in migrations])

    def _nothing_at(self, server: Traveller, traces: Traces, left: str) -> None:
        """Checks that nothing of the server is at the host that it left; it is at ``server.host`` now."""
        check, now = self._screen.check, server.host
        files = traces.files(left)
        check(f"no disks, no guest on {left}", not files, ", ".join(files))
        words = ("resource", "provider", "show", "--allocations", self._providers[left])
        there = traces.consumers(self._client.json(*words, cloud=ADMIN)["allocations"])
        check(f"no allocations on {left}", not there, ", ".join(there))
        allocated = self._client.json("resource", "provider", "allocation", "show", server.id, cloud=ADMIN)
        providers = {one["resource_provider"] for one in allocated} & set(self._providers.values())
        check(f"its allocation is on {now}", providers == {self._providers[now]}, short(allocated[:1]))
        bindings = list(traces.bindings().values())
        check(f"its port is bound on {now} only", bindings == [[f"{now}: ACTIVE"]], bindings)
        attachments = traces.attachments()
        check(f"its volume is attached on {now} only", attachments == [f"attached on {now}"], ", ".join(attachments))
        images = traces.temporary_images()
        check("no temporary image", not images, ", ".join(images))
        guests = traces.guests()
        check("exactly one guest of it runs", len(guests) == 1, ", ".join(guests))


def path_of(watch: Watch) -> str:
    return " -> ".join(watch.statuses)


def short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 90 else f"{text[:87]}..."
