"""A host that offers disks and one that fetches them, as tests of transfers use them."""

from __future__ import annotations

import threading
import uuid as uuids
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from causeway.compute.disks.disk_offers import DiskOffers
from causeway.compute.disks.disk_server import DiskServer
from causeway.compute.disks.rounds import Rounds
from causeway.compute.handover import disk_fetch
from causeway.http.secured import Tls
from causeway.model.outcomes import DiskOffer
from causeway.virt.driver import DiskExport
from causeway.virt.simulated import SimulatedDriver

MOVE, SERVER = str(uuids.uuid4()), str(uuids.uuid4())
MIB = 1 << 20


@dataclass
class Fetching:
    """As much of a host as fetching needs."""

    conf: Any
    name: str = "fetching"
    stopping: threading.Event = field(default_factory=threading.Event)


@dataclass
class Pair:
    """A host that offers a disk, and one that fetches it."""

    directory: Path
    offers: DiskOffers
    server: DiskServer
    target: Any

    def offer(self, content: bytes, name: str = "disk") -> DiskOffer:
        @contextmanager
        def export(name: str) -> Iterator[DiskExport]:
            path = self.directory / f"export-{name}"
            path.write_bytes(content)
            yield DiskExport(name, path, "qcow2", len(content))

        made = self.offers.make(MOVE, SERVER, [name], export)
        return DiskOffer(f"{self.server.url}/{MOVE}", made.secret, made.disks)

    def fetch(self, offer: DiskOffer, reported: list[int] | None = None) -> Path:
        path = self.directory / "fetched"
        disk_fetch.fetch(self.target, offer, offer.disks[0], path, (reported if reported is not None else []).append)
        return path

    def restart(self, tls: Tls | None = None) -> None:
        """The source's compute ends and begins again."""
        self.server.stop()
        self.server = new_server(self.directory, tls)
        self.server.start()


def new_server(directory: Path, tls: Tls | None = None) -> DiskServer:
    rounds = Rounds(directory / "rounds", SimulatedDriver("host", directory / "hypervisor"), lambda _size: None)
    return DiskServer(DiskOffers(directory / "offers"), rounds, "127.0.0.1", 0, directory / "port", tls)
