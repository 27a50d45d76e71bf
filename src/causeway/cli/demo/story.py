"""The story, from top to bottom."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from causeway.cli.demo import ticks
from causeway.cli.demo.chapter import NETWORK, Traveller, cell_of, path_of, short
from causeway.cli.demo.client import ADMIN
from causeway.cli.demo.cloud import Cloud
from causeway.cli.demo.emptying import EmptyingChapter
from causeway.cli.demo.screen import Screen
from causeway.cli.demo.serial_console import can_type
from causeway.cli.demo.shared_disks import DiskMove, disk_moves, disks_that_moved
from causeway.cli.demo.timeline import moves_of, seen_from_outside, timeline
from causeway.cli.demo.watch import TIMEOUT
from causeway.model.operations import REVERT_RESIZE
from causeway.virt.lab.observer import PORT

IMAGE, SUBNET, KEY = "story-image", "story-subnet", "story-key"
PREFIX = "story-"
TAGS, PROPERTIES = ["blue", "story"], {"purpose": "demo"}


class Story(EmptyingChapter):
    """Runs the story on a cloud that is ready."""

    def __init__(self, cloud: Cloud, screen: Screen, image: tuple[Path, str]) -> None:
        super().__init__(cloud, screen)
        self._image = image
        self._gateway = ""
        self._running = ExitStack()

    def run(self) -> None:
        with self._running:
            self._run()

    def _run(self) -> None:
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
        if neighbour := self._neighbour(second):
            self._screen.heading("7. It goes to the other host of its cell, and does not stop")
            self._migrate_live(second, neighbour)
        travellers = [first, second]
        if self._cloud.real:
            self._screen.heading("8. A third one, on a flavor that both cells have, goes to the other cell as well")
            third = Traveller("story-3", "story-data-3")
            self._boot(third, "any.small", cell=None)
            self._migrate_live(third, self._elsewhere(third))
            travellers.append(third)
            if apart := self._cloud.apart(third.host):
                self._screen.heading(
                    "9. It goes back, from a host that reaches no other: it stands still, and does not boot"
                )
                with apart:
                    self._migrate_live(third, self._elsewhere(third))
            if can_type():
                self._screen.heading("10. A fourth one does not boot after its move: its owner rescues and repairs it")
                fourth = Traveller("story-4", "story-data-4")
                self._boot(fourth)
                self._rescue(fourth, IMAGE)
        self._screen.heading("11. cell1 must be empty: everything leaves it, and it is deleted")
        self._empty(IMAGE, self._ticking(), travellers)
        self._screen.heading("What the moves did, step by step")
        moves = {server.name: moves_of(self._cloud, server.id, self._screen) for server in travellers}
        self._screen.console.print(timeline(moves))
        if self._observer is not None:
            self._screen.console.print(seen_from_outside(moves, travellers))
        if any(self._cloud.storage(host) for host in self._providers):
            self._show_disks([each for one in travellers for each in self._disk_moves(one, moves[one.name])])

    def _disk_moves(self, server: Traveller, moves: list[dict[str, Any]]) -> list[DiskMove]:
        return disk_moves(server.name, moves, self._traces(server).counted())

    def _show_disks(self, moves: list[DiskMove]) -> None:
        """Shows and checks what was sent of the disks: nothing where both hosts reach them, else all that is on them."""
        self._screen.console.print(disks_that_moved(moves))
        for move in moves:
            storage, other = (self._cloud.storage(host) for host in (move.source, move.target))
            claim = f"{move.server}: {move.recipe}, {move.source} -> {move.target}"
            if move.recipe == REVERT_RESIZE or (storage is not None and storage == other):
                self._screen.check(f"{claim}: no byte of its disk was sent", move.sent == 0, f"{move.sent:,} B")
            else:
                self._screen.check(f"{claim}: its disk was copied", move.sent > 0, f"{move.sent:,} B")

    def _clean_up(self) -> None:
        """Deletes what an earlier run made."""
        self._reopen()
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
        # A guest that does not boot does not react to the power button either: it gets less time for it.
        image = self._client.json(*words, "--property", "os_shutdown_timeout=20", IMAGE)
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
        self._gateway = subnet["gateway_ip"]

        flavors = {one["Name"]: one for one in self._client.json("flavor", "list", "--long")}
        aggregates = {one["Name"]: one for one in self._client.json("aggregate", "list", "--long", cloud=ADMIN)}
        for generation, (name, cell) in enumerate((("gen1", "cell1"), ("gen2", "cell2")), start=1):
            flavor, aggregate = flavors[f"{name}.small"], aggregates[name]
            tie = flavor["Properties"].get("aggregate_instance_extra_specs:gen")
            gen = aggregate["Properties"].get("gen")
            check(
                f"flavor {name}.small is tied to {cell} through aggregate {name}",
                tie == gen == str(generation) and {cell_of(host) for host in aggregate["Hosts"]} == {cell},
                f"gen={gen}, {flavor['VCPUs']} vCPU, {flavor['RAM']} MB, {flavor['Disk']} GB",
            )
        run("keypair", "create", "--private-key", str(self._cloud.state.path / KEY), KEY)
        hosts = {host for aggregate in aggregates.values() for host in aggregate["Hosts"]}
        listed = self._client.json("resource", "provider", "list", cloud=ADMIN)
        # Others are of storage that hosts share.
        self._providers = {one["name"]: one["uuid"] for one in listed if one["name"] in hosts}
        check("Placement knows all hosts", hosts <= set(self._providers), ", ".join(sorted(hosts)))

    def _boot(self, server: Traveller, flavor: str = "gen1.small", cell: str | None = "cell1") -> None:
        """Boots a server with a volume. ``cell``: the cell that its flavor is tied to; None: any."""
        check = self._screen.check
        server.volume_id = self._client.json("volume", "create", "--size", "1", server.volume)["id"]
        volumes = self._user.block_storage
        volumes.wait_for_status(volumes.get_volume(server.volume_id), "available", interval=0.2, wait=60)
        words = [
            "server",
            "create",
            "--flavor",
            flavor,
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
        words += self._ticking()
        device = f"uuid={server.volume_id},source_type=volume,destination_type=volume,boot_index=-1"
        created = self._client.json(*words, "--block-device", device, "--wait", server.name)
        server.id = created["id"]
        check("the server is ACTIVE", created["status"] == "ACTIVE")
        server.at_first = self._console(server, after_boot=0)
        server.actions = [event["Action"] for event in self._events(server)]
        server.shown = self._arrived(server, cell)
        self._has_flavor(server.at_first, flavor)
        for disk, what in (("vda", "its root disk"), ("vdb", "the volume")):
            check(f"the guest wrote a marker to {what}", server.at_first.lines(disk) == 1, server.at_first.first(disk))
        self._answers(server, server.at_first)
        self._listen(server)
        if self._observer is not None:
            knows = f"CAUSEWAY-METADATA hostname={server.name}" in self._said(server)
            check("it got its name and its user data from the metadata service", knows)

    def _ticking(self) -> list[str]:
        """The options of a server whose guest ticks, with a script from the metadata service; none where nobody can hear it."""
        if self._cloud.observer(self._network_id) is None:
            return []
        path = self._cloud.state.path / "story-ticks.sh"
        path.write_text(ticks.script(self._gateway, PORT))
        return ["--user-data", str(path)]

    def _listen(self, server: Traveller) -> None:
        if self._observer is None and (observer := self._cloud.observer(self._network_id)):
            self._observer = self._running.enter_context(observer)
        if self._observer is not None:
            with self._screen.working("The guest begins to tick"):
                self._observer.wait_for(server.address, 0.0, TIMEOUT)
            self._screen.check("an observer outside hears it tick", True, f"at {self._gateway}")

    def _resize(self, server: Traveller) -> None:
        server.left_at = time.monotonic()
        watch = self._watched(server, {"VERIFY_RESIZE"}, ("resize", "--flavor", "gen2.small", server.name))
        self._screen.check(
            "status went RESIZE -> VERIFY_RESIZE",
            watch.statuses == ["ACTIVE", "RESIZE", "VERIFY_RESIZE"],
            path_of(watch),
        )
        self._listed_once(watch)

    def _same_server(self, server: Traveller) -> None:
        """Checks that the server is in cell2 with another size, and that nothing else has changed."""
        check, before = self._screen.check, server.at_first
        now = server.on_target = self._console(server, after_boot=before.boot)
        shown = self._arrived(server, "cell2")
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
        self._report_silence(server)
        for name in ("id", "name", "addresses", "tags", "properties", "key_name", "volumes_attached", "created"):
            check(f"same {name}", shown[name] == server.shown[name], short(shown[name]))
        actions = [event["Action"] for event in self._events(server)]
        kept = actions[-len(server.actions) :] == server.actions
        check("its history came along and continued", kept and actions[0] == "resize", ", ".join(reversed(actions)))

    def _confirm(self, server: Traveller) -> None:
        left = server.shown["OS-EXT-SRV-ATTR:host"]
        watch = self._watched(server, {"ACTIVE", "SHUTOFF"}, ("resize", "confirm", server.name))
        self._screen.check("the server is ACTIVE", watch.statuses[-1] == "ACTIVE", path_of(watch))
        self._listed_once(watch)
        self._nothing_left(server, left)

    def _revert(self, server: Traveller) -> None:
        check, before, away, left = self._screen.check, server.at_first, server.on_target, server.host
        server.left_at = time.monotonic()
        watch = self._watched(server, {"ACTIVE", "SHUTOFF"}, ("resize", "revert", server.name))
        check(
            "status went REVERT_RESIZE -> ACTIVE",
            watch.statuses == ["VERIFY_RESIZE", "REVERT_RESIZE", "ACTIVE"],
            path_of(watch),
        )
        self._listed_once(watch)
        shown = self._arrived(server, "cell1", " again")
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
        self._report_silence(server)
        for name in ("id", "addresses", "tags", "properties", "key_name", "volumes_attached", "flavor"):
            check(f"same {name}", shown[name] == server.shown[name], short(shown[name]))
        actions = [event["Action"] for event in self._events(server)]
        check(
            "its history has all of it",
            actions == ["revertResize", "resize", *server.actions],
            ", ".join(reversed(actions)),
        )
        self._nothing_left(server, left)

    def _nothing_left(self, server: Traveller, left: str) -> None:
        """Checks that nothing of the server is in the cell of the host that it left."""
        check, cell, traces = self._screen.check, cell_of(left), self._traces(server)
        records = traces.records(cell)
        check(f"no records in the database of {cell}", not records, ", ".join(records))
        check("its records are in the other cell", bool(traces.records(cell_of(server.host))))
        self._nothing_at(server, traces, left)

    def _report_silence(self, server: Traveller) -> None:
        silence = self._heard(server, server.left_at)
        if silence is not None:
            self._screen.note(f"outside nothing was heard of it for {silence.seconds:.1f} s, its boot included")
