"""Moves of a real guest by a real Nova, and then by a Causeway that has taken over the same hosts: times, silences, memory.

    .venv/bin/python -W ignore -m benchmarks.beside_nova [--json FILE]           (root; scripts/install-nova.sh before)

Two cells of two hosts, each a network namespace with its own libvirt and Open vSwitch agent; emulated guests (no KVM); Nova,
Keystone, Glance, Neutron, Cinder, Placement, MariaDB and RabbitMQ on the same machine. Both read the same options of hosts
(``vif_plugging_is_fatal = false``, ``vif_plugging_timeout = 30``: with Nova's defaults its move to another cell fails beside
this Neutron).

**Silence** is the longest time in which the guest wrote no line to its console and disk, seen in its hosts' files: the guest
counts seconds, so it is at least one second, and has the guest's boot where it was off. **Wall** is from the request until the
API shows the state. **Memory**: proportional set size (PSS) of all processes of the control plane and of hosts, guests not.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.functional.processes.own_process import until
from tests.integration.adopt import outside
from tests.integration.adopt.adopted_cloud import AdoptedCloud, adopted_cloud
from tests.integration.adopt.nova_cloud import NovaCloud, missing, nova_cloud
from tests.integration.adopt.population import Populator

_HOST_OPTIONS = {"DEFAULT": {"vif_plugging_is_fatal": False, "vif_plugging_timeout": 30}}
_SERVER, _PATIENCE = "active", 600.0
# Seconds between two looks at consoles.
_LOOK = 0.1
# Words of command lines, of which each process of a system has one.
_PROCESSES = {
    "nova": ("bin/nova-", "nova.wsgi", "nova.privsep", "vif_plug_ovs.privsep", "os_brick.privileged"),
    "causeway": ("bin/causeway ", "causeway."),
}


@dataclass
class Measured:
    system: str
    what: str
    wall: float
    silence: float
    status: str
    load: float


class Watch:
    """Notes when the guest of a server has written a further line, on whichever host it is."""

    def __init__(self, cloud: NovaCloud, uuid: str) -> None:
        homes = [cloud.nova.home(host) for host in cloud.machines.endpoints]
        self._consoles = [home / "instances" / uuid / "console.log" for home in homes]
        self._seen = [time.monotonic()]
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # Not the most lines: a revert brings back the disk that the guest had, which has fewer.
        before = self._newest()
        while not self._end.wait(_LOOK):
            newest = self._newest()
            if newest != before and any(each is not None for each in newest):
                self._seen.append(time.monotonic())
            before = newest

    def _newest(self) -> list[outside.Tick | None]:
        """The last one of each host's console; None: there is none."""
        found: list[outside.Tick | None] = []
        for console in self._consoles:
            try:
                ticks = outside.ticks_in(console.read_text(errors="replace"))
            except OSError:
                ticks = []
            found.append(ticks[-1] if ticks else None)
        return found

    def longest(self, since: float) -> float:
        """The longest silence that ended, or lasts still, after this moment."""
        seen, now = list(self._seen), time.monotonic()
        return max(
            later - max(earlier, since) for earlier, later in zip(seen, [*seen[1:], now], strict=True) if later >= since
        )

    def await_line(self) -> bool:
        """Whether the guest writes twice more within its patience."""
        before = len(self._seen)
        try:
            until(lambda: len(self._seen), lambda seen: seen > before + 1, "the guest to write", _PATIENCE / 4)
        except AssertionError:
            return False
        return True

    def stop(self) -> None:
        self._end.set()
        self._thread.join()


class Moves:
    """``compute``: of the system that is measured, as administrator."""

    def __init__(self, system: str, compute: Any, watch: Watch, uuid: str) -> None:
        self.system, self.compute, self.watch, self.uuid = system, compute, watch, uuid
        self.found: list[Measured] = []

    def all(self) -> None:
        place = "in the cell"
        if self._resize("gen1.large", place):
            self._revert(place)
            for flavor in ("gen1.large", "gen1.small"):
                self._resize(flavor, place)
                self._confirm(place)
        before = self.compute.get_server(self.uuid).compute_host
        migrate = partial(self.compute.live_migrate_server, self.uuid, host=None, block_migration="auto")
        self._timed("live migration in the cell", migrate, "ACTIVE", moved_from=before)
        place = "to another cell"
        if self._resize("gen2.small", place):
            self._revert(place)
            self._resize("gen2.small", place)
            self._confirm(place)

    def _resize(self, flavor: str, place: str) -> bool:
        """Whether it waits for confirm or revert then."""
        return self._timed(f"resize {place}", partial(self.compute.resize_server, self.uuid, flavor), "VERIFY_RESIZE")

    def _revert(self, place: str) -> None:
        self._timed(f"resize {place}: revert", partial(self.compute.revert_server_resize, self.uuid), "ACTIVE")

    def _confirm(self, place: str) -> None:
        self._timed(f"resize {place}: confirm", partial(self.compute.confirm_server_resize, self.uuid), "ACTIVE")

    def _timed(self, what: str, act: Callable[[], object], status: str, *, moved_from: str | None = None) -> bool:
        began = time.monotonic()
        act()

        def is_over(server: Any) -> bool:
            if server.status == "ERROR":
                return True
            return bool(server.status == status and server.task_state is None and server.compute_host != moved_from)

        server = until(lambda: self.compute.get_server(self.uuid), is_over, f"{what} to end", _PATIENCE)
        wall = time.monotonic() - began
        writes = self.watch.await_line()
        silence = self.watch.longest(began)
        status = server.status if writes else f"{server.status}, and the guest is silent"
        self.found.append(
            Measured(self.system, what, round(wall, 1), round(silence, 1), status, round(os.getloadavg()[0], 1))
        )
        print(asdict(self.found[-1]), flush=True)
        return bool(server.status == status)


def memory(system: str) -> dict[str, float]:
    """Processes of a system, and their PSS in MiB."""
    count, total = 0, 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if any(word in command for word in _PROCESSES[system]) and "benchmarks" not in command:
                rollup = (folder / "smaps_rollup").read_text()
                total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
                count += 1
        except (OSError, StopIteration):
            continue
    return {"processes": count, "pss_mib": round(total / 1024)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    used: dict[str, dict[str, float]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="cw-nova-", ignore_cleanup_errors=True) as folder,
        nova_cloud(Path(folder), host_options=_HOST_OPTIONS) as cloud,
    ):
        populator = Populator(cloud)
        # One for each: the move to another cell may break the first.
        first, second = (populator.populate([_SERVER]).servers[_SERVER] for _each in range(2))
        watch = Watch(cloud, first)
        nova = Moves("nova", cloud.nova.connection("admin").compute, watch, first)
        nova.all()
        watch.stop()
        used["nova"] = memory("nova")
        cloud.nova.connection("admin").compute.delete_server(first)
        with adopted_cloud(cloud) as adopted:
            watch = Watch(cloud, second)
            ours = _adopted(adopted, cloud, watch, second)
            watch.stop()
            used["causeway"] = memory("causeway")
    found = [*nova.found, *ours.found]
    if given.json is not None:
        given.json.write_text(json.dumps({"moves": [asdict(each) for each in found], "memory": used}, indent=2))
    show(found, used)


def _adopted(adopted: AdoptedCloud, cloud: NovaCloud, watch: Watch, uuid: str) -> Moves:
    adopted.take(*cloud.nova.hosts)
    adopted.point_catalog(f"{adopted.api_url}/v2.1")
    moves = Moves("causeway", adopted.admin.compute, watch, uuid)
    try:
        moves.all()
    finally:
        adopted.point_catalog(cloud.nova.url)
    return moves


def show(found: list[Measured], used: dict[str, dict[str, float]]) -> None:
    table = Table("", "System", "Wall s", "Silence s", "State then", "Load")
    for each in sorted(found, key=lambda one: one.what):
        table.add_row(each.what, each.system, f"{each.wall}", f"{each.silence}", each.status, f"{each.load}")
    console = Console()
    console.print(table)
    for system, one in used.items():
        console.print(f"{system}: {one['processes']:.0f} processes, {one['pss_mib']:.0f} MiB")


if __name__ == "__main__":
    main()
