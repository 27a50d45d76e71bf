"""The story, from top to bottom."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from causeway.cli.demo.client import ADMIN, USER, Client
from causeway.cli.demo.cloud import Cloud
from causeway.cli.demo.evidence import Traces
from causeway.cli.demo.guest import GuestReport
from causeway.cli.demo.screen import Screen
from causeway.cli.demo.timeline import moves_of, timeline
from causeway.cli.demo.watch import Watch, connect, guest_report

CELL1, CELL2 = "cell1-host1", "cell2-host1"
IMAGE, NETWORK, SUBNET, KEY = "story-image", "story-net", "story-subnet", "story-key"
PREFIX = "story-"
SIZES = {"gen1.small": (1, 128), "gen2.small": (2, 192)}
TAGS, PROPERTIES = ["blue", "story"], {"purpose": "demo"}


class MoveFailed(Exception):
    """A server is not where it should have come to."""


@dataclass
class Traveller:
    """One of the story's servers: what was seen of it before it moved."""

    name: str
    volume: str
    id: str = ""
    volume_id: str = ""
    at_first: GuestReport = field(default_factory=GuestReport)
    on_target: GuestReport = field(default_factory=GuestReport)
    shown: dict[str, Any] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)


class Story:
    """Tells the story on a cloud that is ready. Checks go to the screen; what can't go on raises."""

    def __init__(self, cloud: Cloud, screen: Screen, image: tuple[Path, str]) -> None:
        self._cloud = cloud
        self._screen = screen
        self._image = image
        self._client = Client(screen, cloud.state.clouds)
        self._user = connect(cloud.state.clouds, USER)
        self._admin = connect(cloud.state.clouds, ADMIN)
        self._network_id = ""
        self._providers: dict[str, str] = {}

    def tell(self) -> None:
        first, second = Traveller("story-1", "story-data-1"), Traveller("story-2", "story-data-2")
        self._clean_up()
        self._screen.heading("1. An image, a network, flavors tied to cells, a key pair, a volume")
        self._prepare()
        self._screen.heading("2. A server boots in cell1, on gen1")
        self._boot(first)
        self._screen.heading("3. Its owner resizes it to gen2, which only cell2 has")
        self._resize(first)
        self._screen.heading("4. It is the same server")
        self._same_server(first)
        self._screen.heading("5. Confirm: nothing of it is left in cell1")
        self._confirm(first)
        self._screen.heading("6. A second server goes the same way, and comes back")
        self._boot(second)
        self._resize(second)
        self._same_server(second)
        self._revert(second)
        self._screen.heading("What the moves did, step by step")
        moves = {server.name: moves_of(self._cloud, server.id, self._screen) for server in (first, second)}
        self._screen.console.print(timeline(moves))

    def _clean_up(self) -> None:
        """Takes away what an earlier run made."""
        kinds: list[tuple[list[str], Any]] = [
            (["server", "delete", "--wait"], self._user.compute.servers()),
            (["volume", "delete"], self._user.block_storage.volumes()),
            (["keypair", "delete"], self._user.compute.keypairs()),
            (["image", "delete"], self._user.image.images(owner=self._user.current_project_id)),
            (["network", "delete"], self._user.network.networks()),
        ]
        for words, things in kinds:
            names = sorted({thing.name for thing in things if (thing.name or "").startswith(PREFIX)})
            if names:
                self._client.run(*words, *names)

    def _prepare(self) -> None:
        run, check = self._client.run, self._screen.check
        path, disk_format = self._image
        size = path.stat().st_size
        words = ["image", "create", "--file", str(path), "--disk-format", disk_format, "--container-format", "bare"]
        image = self._client.json(*words, IMAGE)
        check(
            "the image is active, with all its bytes",
            (image["status"], image["size"]) == ("active", size),
            f"{image['size']:,} bytes",
        )
        self._network_id = self._client.json("network", "create", NETWORK)["id"]
        subnet = self._client.json(
            "subnet", "create", "--network", NETWORK, "--subnet-range", "192.168.77.0/24", SUBNET
        )
        check("the network has a subnet", subnet["network_id"] == self._network_id, subnet["cidr"])

        flavors = {one["Name"]: one for one in self._client.json("flavor", "list", "--long")}
        aggregates = {one["Name"]: one for one in self._client.json("aggregate", "list", "--long", cloud=ADMIN)}
        for generation, (name, host) in enumerate((("gen1", CELL1), ("gen2", CELL2)), start=1):
            flavor, aggregate = flavors[f"{name}.small"], aggregates[name]
            tie = flavor["Properties"].get("aggregate_instance_extra_specs:gen")
            gen = aggregate["Properties"].get("gen")
            check(
                f"flavor {name}.small is tied to {host} through aggregate {name}",
                tie == gen == str(generation) and aggregate["Hosts"] == [host],
                f"gen={gen}, {flavor['VCPUs']} vCPU, {flavor['RAM']} MB, {flavor['Disk']} GB",
            )
        run("keypair", "create", "--private-key", str(self._cloud.state.path / KEY), KEY)
        self._providers = {
            one["name"]: one["uuid"] for one in self._client.json("resource", "provider", "list", cloud=ADMIN)
        }
        check("Placement knows both hosts", {CELL1, CELL2} <= set(self._providers))

    def _boot(self, server: Traveller) -> None:
        """Boots a server with a volume in cell1."""
        check = self._screen.check
        server.volume_id = self._client.json("volume", "create", "--size", "1", server.volume)["id"]
        volumes = self._user.block_storage
        volumes.wait_for_status(volumes.get_volume(server.volume_id), "available", interval=0.2, wait=60)
        words = [
            "server",
            "create",
            "--flavor",
            "gen1.small",
            "--image",
            IMAGE,
            "--network",
            NETWORK,
            "--key-name",
            KEY,
        ]
        for tag in TAGS:
            words += ["--tag", tag]
        for name, value in PROPERTIES.items():
            words += ["--property", f"{name}={value}"]
        device = f"uuid={server.volume_id},source_type=volume,destination_type=volume,boot_index=-1"
        created = self._client.json(*words, "--block-device", device, "--wait", server.name)
        server.id = created["id"]
        check("the server is ACTIVE", created["status"] == "ACTIVE")
        server.at_first = self._console(server, after_boot=0)
        server.shown = self._show(server)
        server.actions = [event["Action"] for event in self._events(server)]
        host = server.shown["OS-EXT-SRV-ATTR:host"]
        check("it runs in cell1", host == CELL1, host)
        self._has_flavor(server.at_first, "gen1.small")
        for disk, what in (("vda", "its root disk"), ("vdb", "the volume")):
            check(f"the guest wrote a marker to {what}", server.at_first.lines(disk) == 1, server.at_first.first(disk))
        self._answers(server, server.at_first)

    def _resize(self, server: Traveller) -> None:
        watch = self._watched(server, {"VERIFY_RESIZE"}, ("resize", "--flavor", "gen2.small", server.name))
        self._screen.check(
            "status went RESIZE -> VERIFY_RESIZE", watch.statuses == ["ACTIVE", "RESIZE", "VERIFY_RESIZE"], _path(watch)
        )
        self._listed_once(watch)

    def _same_server(self, server: Traveller) -> None:
        """In cell2 with another size, and the same in everything else."""
        check, before = self._screen.check, server.at_first
        now = server.on_target = self._console(server, after_boot=before.boot)
        shown = self._show(server)
        host = shown["OS-EXT-SRV-ATTR:host"]
        check("it runs in cell2", host == CELL2, host)
        self._has_flavor(now, "gen2.small")
        for disk, what in (("vda", "its root disk"), ("vdb", "the volume")):
            kept = now.first(disk) == before.first(disk) and now.lines(disk) == before.lines(disk) + 1
            check(f"the marker on {what} came along", kept, now.first(disk))
        check(
            "same MAC and same address in the guest",
            (now.mac, now.ip) == (before.mac, before.ip),
            f"{now.mac} {now.ip}",
        )
        self._answers(server, now)
        for name in ("id", "name", "addresses", "tags", "properties", "key_name", "volumes_attached", "created"):
            check(f"same {name}", shown[name] == server.shown[name], _short(shown[name]))
        actions = [event["Action"] for event in self._events(server)]
        kept = actions[-len(server.actions) :] == server.actions
        check("its history came along and went on", kept and actions[0] == "resize", ", ".join(reversed(actions)))

    def _confirm(self, server: Traveller) -> None:
        watch = self._watched(server, {"ACTIVE", "SHUTOFF"}, ("resize", "confirm", server.name))
        self._screen.check("the server is ACTIVE", watch.statuses[-1] == "ACTIVE", _path(watch))
        self._listed_once(watch)
        self._nothing_left(server, "cell1", CELL1, CELL2)

    def _revert(self, server: Traveller) -> None:
        check, before, away = self._screen.check, server.at_first, server.on_target
        watch = self._watched(server, {"ACTIVE", "SHUTOFF"}, ("resize", "revert", server.name))
        check(
            "status went REVERT_RESIZE -> ACTIVE",
            watch.statuses == ["VERIFY_RESIZE", "REVERT_RESIZE", "ACTIVE"],
            _path(watch),
        )
        self._listed_once(watch)
        shown = self._show(server)
        host = shown["OS-EXT-SRV-ATTR:host"]
        check("it runs in cell1 again", host == CELL1, host)
        now = self._console(server, after_boot=before.boot)
        self._has_flavor(now, "gen1.small")
        as_it_was = now.first("vda") == before.first("vda") and now.lines("vda") == before.lines("vda") + 1
        check(
            "its root disk is as it was when it left: what was written in cell2 is gone",
            as_it_was,
            f"boots on it: {before.lines('vda')} when it left, {away.lines('vda')} in cell2, {now.lines('vda')} now",
        )
        check(
            "the volume has everything that was ever written to it",
            now.first("vdb") == before.first("vdb") and now.lines("vdb") == away.lines("vdb") + 1,
            f"{now.lines('vdb')} lines",
        )
        check(
            "same MAC and same address in the guest",
            (now.mac, now.ip) == (before.mac, before.ip),
            f"{now.mac} {now.ip}",
        )
        self._answers(server, now)
        for name in ("id", "addresses", "tags", "properties", "key_name", "volumes_attached", "flavor"):
            check(f"same {name}", shown[name] == server.shown[name], _short(shown[name]))
        actions = [event["Action"] for event in self._events(server)]
        check(
            "its history has all of it",
            actions == ["revertResize", "resize", *server.actions],
            ", ".join(reversed(actions)),
        )
        self._nothing_left(server, "cell2", CELL2, CELL1)

    def _nothing_left(self, server: Traveller, cell: str, left: str, now: str) -> None:
        """Looks where the server was; ``left`` is the host that it left, ``now`` the one where it runs."""
        check = self._screen.check
        migrations = self._admin.compute.get(f"/os-migrations?instance_uuid={server.id}", microversion="2.59").json()[
            "migrations"
        ]
        traces = Traces(self._cloud, self._admin, server.id, [one["uuid"] for one in migrations])

        records = traces.records(cell)
        check(f"no records in the database of {cell}", not records, ", ".join(records))
        check("its records are in the other cell", bool(traces.records("cell2" if cell == "cell1" else "cell1")))
        files = traces.files(left)
        check(f"no disks, no guest on {left}", not files, ", ".join(files))
        words = ("resource", "provider", "show", "--allocations", self._providers[left])
        there = traces.consumers(self._client.json(*words, cloud=ADMIN)["allocations"])
        check(f"no allocations on {left}", not there, ", ".join(there))
        allocated = self._client.json("resource", "provider", "allocation", "show", server.id, cloud=ADMIN)
        providers = [one["resource_provider"] for one in allocated]
        check(f"its allocation is on {now}", providers == [self._providers[now]], _short(allocated[:1]))
        bindings = list(traces.bindings().values())
        check(f"its port is bound on {now} only", bindings == [[f"{now}: ACTIVE"]], bindings)
        attachments = traces.attachments()
        check(f"its volume is attached on {now} only", attachments == [f"attached on {now}"], ", ".join(attachments))
        images = traces.temporary_images()
        check("no temporary image", not images, ", ".join(images))

    def _watched(self, server: Traveller, until: set[str], words: tuple[str, ...]) -> Watch:
        began = time.monotonic()
        with (
            self._screen.working(f"{server.name} moves") as status,
            Watch(self._user.compute, server.id, until, lambda path: status.update(f"{server.name}: {path}")) as watch,
        ):
            self._client.run("server", *words)
        if watch.statuses[-1] not in until:
            fault = self._show(server).get("fault") or {}
            raise MoveFailed(f"{_path(watch)}: {fault.get('message', 'no fault is recorded')}")
        self._screen.note(f"{_path(watch)} in {time.monotonic() - began:.1f} s, the client's own start included")
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
        """Newest first."""
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
        address = server.shown["addresses"][NETWORK][0]
        if not self._cloud.real:
            self._screen.check(
                "the guest has the port's address (simulated: there is nothing to ping)", report.ip == address
            )
            return
        answer = self._cloud.ping(self._network_id, address)
        claim = f"it answers ping on {address}"
        self._screen.check(claim, answer.lossless, f"{answer.received} of {answer.sent}, {answer.round_trip_ms} ms")


def _path(watch: Watch) -> str:
    return " -> ".join(watch.statuses)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 90 else f"{text[:87]}..."
