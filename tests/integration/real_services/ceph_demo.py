"""``make demo STORAGE=ceph``: the demonstration's story on guests whose disks are in a real Ceph, one for both cells.

``STORAGE=ceph-per-cell``: each cell has a Ceph of its own. Then a move to the other cell copies the disk again.

As root. Everything is started for it and ends with it: Ceph's daemons, four hosts with libvirt, and the cloud in this process.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
from platformdirs import user_cache_path

from causeway.cli.console import make_console
from causeway.cli.demo.cloud import DemoCloud
from causeway.cli.demo.command import FAILURES, conclude
from causeway.cli.demo.screen import Screen
from causeway.cli.demo.story import Story
from causeway.cli.embedded.up import CONSOLE
from causeway.embedded.cloud import EmbeddedCloud
from causeway.embedded.settings import StateDir
from causeway.virt.lab.guest_image import build_guest_image
from causeway.virt.lab.hosts import Lab
from causeway.virt.lab.hosts import missing as no_hosts
from causeway.virt.libvirt.storage.rbd_pool import CephPool
from tests.integration.real_services import ceph
from tests.integration.real_services.ceph import Ceph
from tests.integration.real_services.ceph_cloud import HOSTS, ceph_of

#: of networks that nothing else on this machine has
ADDRESSES = ("10.96.31.254", "10.96.32.254")
SHARED, PER_CELL = "ceph", "ceph-per-cell"


class CephDemoCloud(DemoCloud):
    """What the story needs, of a cloud in this process. ``cephs``: host -> what has its disks."""

    def __init__(self, embedded: EmbeddedCloud, cephs: dict[str, Ceph]) -> None:
        super().__init__(StateDir(embedded.state.path), "libvirt", embedded.url)
        self._cephs = cephs

    def storage(self, host: str) -> str | None:
        return self._cephs[host].fsid

    def in_storage(self, host: str, server: str) -> list[str]:
        found = []
        for name in self._cephs[host].run("rbd", "ls", "vms").split():
            if name.startswith(server):
                owner = self._cephs[host].run("rbd", "image-meta", "get", f"vms/{name}", "causeway.owner").split()[1]
                labels = self._cephs[host].run("rbd", "snap", "ls", f"vms/{name}")
                found += [f"{name} of {owner}"] if owner == host or f"-{host}-" in labels else []
        return found

    def serve_console(self, embedded: EmbeddedCloud, running: ExitStack) -> None:
        """The page for operators, as `causeway up` has it."""
        console, way_in = make_console(self.state.path, None, CONSOLE)
        running.callback(console.stopping.set)
        embedded.web.mount(CONSOLE, console.app)
        self._console = f"{embedded.url}{way_in}"


@contextmanager
def running_cloud(folder: Path, *, per_cell: bool) -> Iterator[CephDemoCloud]:
    """Serves inside of the context."""
    lab = Lab(folder / "state" / "lab")
    endpoints = lab.start(HOSTS)
    groups = [[host for host in HOSTS if host.startswith(cell)] for cell in ("cell1", "cell2")] if per_cell else [HOSTS]
    cephs: dict[str, Ceph] = {}
    pools: dict[str, CephPool] = {}
    try:
        with ExitStack() as running:
            for number, (hosts, address) in enumerate(zip(groups, ADDRESSES, strict=False)):
                namespaces = [endpoints[host].netns for host in hosts]
                its, pool = running.enter_context(ceph_of(folder / f"ceph{number}", address, namespaces))
                cephs |= dict.fromkeys(hosts, its)
                pools |= dict.fromkeys(hosts, pool)
            embedded = EmbeddedCloud(
                folder / "state",
                port=0,
                cells=2,
                hosts_per_cell=2,
                driver="libvirt",
                log_file=folder / "state" / "causeway.log",
                pools=pools,
            )
            embedded.start()
            running.callback(embedded.stop)
            cloud = CephDemoCloud(embedded, cephs)
            cloud.serve_console(embedded, running)
            yield cloud
    finally:
        lab.stop(keep_guests=False)


@click.command()
@click.option(
    "--storage", type=click.Choice([SHARED, PER_CELL]), default=SHARED, help="One Ceph, or one for each cell."
)
def main(storage: str) -> None:
    screen, began = Screen(), time.monotonic()
    has = "disks in a Ceph of each cell" if storage == PER_CELL else "all disks in one Ceph"
    screen.heading(f"Causeway: two cells, two QEMU hosts in each, {has}")
    if reason := no_hosts() or ceph.missing():
        screen.console.print(f"This can't run here: {reason}")
        raise SystemExit(2)
    folder = Path(tempfile.mkdtemp(prefix="causeway-demo-"))
    try:
        with ExitStack() as running:
            with screen.working("Ceph, hosts and the cloud start (half a minute)"):
                cloud = running.enter_context(running_cloud(folder, per_cell=storage == PER_CELL))
            screen.note(f"ready: {cloud.url} after {time.monotonic() - began:.0f} s")
            image = build_guest_image(user_cache_path("causeway") / "guest-image").path
            try:
                Story(cloud, screen, (image, "qcow2")).run()
            except FAILURES as failure:
                screen.check("the story came to its end", False, f"{type(failure).__name__}: {failure}")
            screen.heading("The end")
            with screen.working("Everything stops"):
                running.close()
        screen.check("everything stopped cleanly", True)
    except AssertionError as failure:
        screen.check("everything started and stopped", False, failure)
    finally:
        if screen.failed:
            screen.note(f"logs: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    conclude(screen, time.monotonic() - began, f"libvirt, {has}")


if __name__ == "__main__":
    os.umask(0o022)
    main()
