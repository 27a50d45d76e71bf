"""The two hosts of `benchmarks.copying`: the compute's own source and target of rounds, over QEMU's servers of files.

::

    python -m benchmarks.copying_ends source FOLDER FILE BYTES DISKS ADDRESS PKI    says the rounds; at the end what it took
    python -m benchmarks.copying_ends target FOLDER PKI                             fetches the rounds that it reads; the same

PKI: a folder of certificates; ``off``: without TLS. The source also sends zeros from its memory to whoever connects to
`PLAIN_PORT`: what a plain connection carries.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import sys
import tempfile
import threading
import time
import uuid as uuids
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from causeway.compute.disks.certificates import Certificates
from causeway.compute.disks.copies import Copies
from causeway.compute.disks.disk_offers import DiskOffers
from causeway.compute.disks.disk_server import DiskServer
from causeway.compute.disks.rounds import Rounds
from causeway.compute.handover.part_fetch import open_part
from causeway.compute.handover.peers import Peer
from causeway.conf import new_config
from causeway.http.secured import Tls
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.outcomes import OperationToken
from causeway.model.warm import CopyRound
from causeway.virt.driver import DiskCopy
from causeway.virt.libvirt.storage import disk_readers
from causeway.virt.libvirt.storage.disk_readers import Reader
from causeway.virt.libvirt.storage.extents import BLOCK
from causeway.virt.libvirt.storage.nbd import NbdClient
from causeway.virt.libvirt.storage.nbd_server import served
from causeway.virt.warm import DiskWriter, Round, RoundDisk

DISK, OFF = "disk", "off"
PLAIN_PORT = 5001
_MIB = 1 << 20


@dataclass
class Took:
    """Seconds of the CPU: of a process of ours, and of QEMU below it. ``seconds``: by the clock; ``plain``: MiB/s."""

    own: float
    qemu: float
    seconds: float = 0.0
    plain: float = 0.0


@dataclass
class Order:
    """A round to fetch, and its move."""

    token: OperationToken
    copied: CopyRound = field(repr=False)


def cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def source(folder: Path, file: Path, size: int, disks: int, address: str, pki: str) -> None:
    """Serves rounds of disks, each of ``size // disks`` bytes of the file, until its input ends."""
    with served(file, "raw") as client:
        driver: Any = _Source(client, size // disks)
        rounds = Rounds(folder / "rounds", driver, lambda _size: None)
        tls = Tls(Certificates(Path(pki)).server_context) if pki != OFF else None
        server = DiskServer(DiskOffers(folder / "offers"), rounds, address, 0, folder / "port", tls)
        server.start()
        orders = [_begun(rounds, server, driver, number) for number in range(disks)]
        with socket.create_server((address, PLAIN_PORT)) as plain:
            threading.Thread(target=_send_plainly, args=[plain], daemon=True).start()
            print(msgspec.json.encode(orders).decode(), flush=True)
            sys.stdin.readline()
            used = cpu(resource.RUSAGE_SELF)
            print(flush=True)
            sys.stdin.readline()
            used = cpu(resource.RUSAGE_SELF) - used
        server.stop()
    print(msgspec.json.encode(Took(used, cpu(resource.RUSAGE_CHILDREN))).decode(), flush=True)


def _begun(rounds: Rounds, server: DiskServer, driver: _Source, number: int) -> Order:
    move = str(uuids.uuid4())
    token = OperationToken(move, move, 1, "CopyWhileRunning")
    flavor = Flavor("one", "one", vcpus=1, memory_mb=1, root_gb=1)
    instance = Instance(str(uuids.uuid4()), "project", "user", "server", flavor)
    driver.first[instance.uuid] = number * driver.share
    return Order(token, rounds.begin(token, instance, [DISK], since=None, flatten=False, url=server.url))


class _Source:
    """As much of a driver as rounds need. ``first``: server -> where its disk begins in the file."""

    def __init__(self, client: NbdClient, share: int) -> None:
        self.share, self.first = share, dict[str, int]()
        self._client = client
        # A connection carries one request after the other; each real disk has its own.
        self._reading = threading.Lock()

    def begin_round(
        self, _instance: Instance, names: list[str], number: int, *, since: int | None, **_more: Any
    ) -> Round:
        return Round(number, since, [RoundDisk(name, self.share, BLOCK) for name in names])

    def has_round(self, _instance: Instance, _number: int) -> bool:
        return True

    @contextmanager
    def open_round(self, instance: Instance, _name: str, _number: int) -> Iterator[_Share]:
        yield _Share(self._client, self.first[instance.uuid], self.share, self._reading)


class _Share(Reader):
    """A part of a file, as a disk."""

    def __init__(self, client: NbdClient, first: int, size: int, reading: threading.Lock) -> None:
        super().__init__(client, [(0, size)], None)
        self._first, self._reading = first, reading

    def read_into(self, offset: int, buffer: memoryview) -> None:
        with self._reading:
            super().read_into(self._first + offset, buffer)


def _send_plainly(plain: socket.socket) -> None:
    zeros = bytes(_MIB)
    with contextlib.suppress(OSError):
        while True:
            connection, _peer = plain.accept()
            with connection, contextlib.suppress(OSError):
                while True:
                    connection.sendall(zeros)


def target(folder: Path, pki: str) -> None:
    """Fetches rounds as a compute does, at the same time."""
    orders = msgspec.json.decode(sys.stdin.readline(), type=list[Order])
    # Before all else: nothing of it may be in what the fetching takes.
    plain = _plain_speed(orders[0].copied.url, msgspec.json.decode(sys.stdin.readline(), type=int))
    driver: Any = _Target()
    copies = Copies(folder / "copies", driver)
    host: Any = _Host(new_config(disk_transfer_tls=OFF if pki == OFF else "required", disk_transfer_pki_dir=pki))
    print(flush=True)
    sys.stdin.readline()

    def receive(order: Order) -> None:
        copied = order.copied
        copies.begin(order.token, str(uuids.uuid4()), copied)
        with Peer(host, copied.secret) as peer:
            for disk in copied.disks:
                copies.receive(
                    order.token,
                    copied,
                    disk,
                    lambda disk, part: open_part(host, peer, copied, disk, part),
                    lambda _image: None,  # type: ignore[arg-type, return-value]
                    lambda _travelled, _of_disk: None,
                )

    began, used = time.monotonic(), cpu(resource.RUSAGE_SELF)
    with ThreadPoolExecutor(len(orders)) as threads:
        list(threads.map(receive, orders))
    seconds, own = time.monotonic() - began, cpu(resource.RUSAGE_SELF) - used
    print(msgspec.json.encode(Took(own, cpu(resource.RUSAGE_CHILDREN), seconds, plain)).decode(), flush=True)


def _plain_speed(url: str, size: int) -> float:
    """MiB/s of so many bytes over a connection, of which nothing is done."""
    address = url.split("//")[1].rsplit(":", 1)[0]
    buffer, done, began = memoryview(bytearray(_MIB)), 0, time.monotonic()
    with socket.create_connection((address, PLAIN_PORT)) as connection:
        while done < size:
            done += connection.recv_into(buffer)
    return done / _MIB / (time.monotonic() - began)


@dataclass
class _Host:
    """As much of a host as fetching needs."""

    conf: Any
    name: str = "target"
    stopping: threading.Event = field(default_factory=threading.Event)


class _Target:
    """As much of a driver as copies need."""

    @contextmanager
    def open_copy(self, copy: DiskCopy) -> Iterator[DiskWriter]:
        with disk_readers.open_copy(copy.path, copy.size, None) as writer:
            yield writer

    def has_copy(self, path: Path) -> bool:
        return path.exists()


def main(words: list[str]) -> None:
    side, folder, *rest = words
    tempfile.tempdir = folder
    if side == "source":
        file, size, disks, address, pki = rest
        source(Path(folder), Path(file), int(size), int(disks), address, pki)
    else:
        target(Path(folder), *rest)


if __name__ == "__main__":
    main(sys.argv[1:])
