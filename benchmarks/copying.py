"""``python -m benchmarks.copying [--mib N] [--disks N]``: what bounds the copying of disks from host to host while guests run.

A disk of random data goes the way that a round takes: QEMU's server reads it, the source's process makes the stream of it and
serves that over HTTP on this machine, the target's checks and writes it through another server of QEMU. What each of them takes
of the CPU is the limit of two hosts; on one machine all of them share it. ``cp`` of the same file, with its flush, is beside it.
Several disks go at the same time, from one process to one: each then has its share of the data.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import requests
from rich.console import Console
from rich.table import Table

from causeway.compute.disks import changes
from causeway.http.server import make_server
from causeway.virt.libvirt.storage.disk_readers import Reader, open_copy
from causeway.virt.libvirt.storage.extents import BLOCK
from causeway.virt.libvirt.storage.nbd import NbdClient
from causeway.virt.libvirt.storage.nbd_server import served

MIB, GIB = 2**20, 2**30


@click.command()
@click.option("--mib", default=1024, show_default=True, help="MiB of random data.")
@click.option("--disks", default=1, show_default=True, help="Disks that go at the same time.")
@click.option("--serve", "serve_from", type=click.Path(path_type=Path), hidden=True)
def main(mib: int, disks: int, serve_from: Path | None) -> None:
    """Copies disks and says who took how long for it (needs qemu-img and qemu-nbd)."""
    if serve_from is not None:
        serve(serve_from, mib // disks * MIB, disks)
        return
    with tempfile.TemporaryDirectory(prefix="copying-") as name:
        folder = Path(name)
        source = folder / "source"
        with source.open("wb") as file:
            for _ in range(mib):
                file.write(os.urandom(MIB))
            os.fsync(file.fileno())
        rows = [("cp and sync", *by_cp(source, folder / "copy")), *by_stream(source, folder, mib, disks)]
    table = Table("", "MiB/s", "CPU, s/GiB", title=f"{mib} MiB of random data, {disks} at a time")
    for what, seconds, cpu in rows:
        speed = f"{mib / seconds:.0f}" if seconds is not None else ""
        table.add_row(what, speed, f"{cpu * 1024 / mib:.2f}")
    Console().print(table)


def by_cp(source: Path, copy: Path) -> tuple[float, float]:
    """Seconds, and seconds of the CPU."""
    began, used = time.monotonic(), cpu(resource.RUSAGE_CHILDREN)
    subprocess.run(["cp", source, copy], check=True)
    subprocess.run(["sync", copy], check=True)
    found = time.monotonic() - began, cpu(resource.RUSAGE_CHILDREN) - used
    copy.unlink()
    return found


def by_stream(source: Path, folder: Path, mib: int, disks: int) -> list[tuple[str, float | None, float]]:
    """Rows: all of it, and each process."""
    words = [sys.executable, "-W", "ignore", "-m", "benchmarks.copying", "--serve", str(source)]
    share = mib // disks * MIB
    with subprocess.Popen(
        [*words, "--mib", str(mib), "--disks", str(disks)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as sender:
        assert sender.stdin is not None and sender.stdout is not None
        url = sender.stdout.readline().strip()

        def receive(number: int) -> None:
            headers = {"Accept-Encoding": "identity"}
            with requests.get(f"{url}{number}", stream=True, timeout=60, headers=headers) as answer:
                answer.raise_for_status()
                with open_copy(folder / f"target{number}", share, None) as writer:
                    body: Any = answer.raw._fp
                    changes.apply(body, writer, changes.Digests(share, BLOCK), lambda _travelled, _length: None)

        began, used, written = time.monotonic(), cpu(resource.RUSAGE_SELF), cpu(resource.RUSAGE_CHILDREN)
        with ThreadPoolExecutor(disks) as threads:
            list(threads.map(receive, range(disks)))
        seconds = time.monotonic() - began
        received, wrote = cpu(resource.RUSAGE_SELF) - used, cpu(resource.RUSAGE_CHILDREN) - written
        sender.stdin.close()
        sent, read = (float(word) for word in sender.stdout.readline().split())
    return [
        ("a round", seconds, read + sent + received + wrote),
        ("  source: QEMU reads", None, read),
        ("  source: our process", None, sent),
        ("  target: our process", None, received),
        ("  target: QEMU writes", None, wrote),
    ]


def serve(source: Path, share: int, disks: int) -> None:
    """The source's side, until its standard input ends. Says its URL, and at the end what it and QEMU took of the CPU.

    ``share``: bytes of the file that each of the disks has.
    """

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        first = int(environ["PATH_INFO"].strip("/")) * share
        write = start_response("200 OK", [("Content-Type", "application/octet-stream")])
        with served(source, "raw") as client:
            reader = Share(client, first, share)
            for piece in changes.stream(reader, reader.extents(), changes.Digests(share, BLOCK), is_full=True):
                write(piece)
        return []

    server = make_server("127.0.0.1", 0, answer, threads=disks + 1, name="source")
    threading.Thread(target=server.serve, name="source", daemon=True).start()
    used = cpu(resource.RUSAGE_SELF)
    print(f"http://127.0.0.1:{server.bind_addr[1]}/", flush=True)
    sys.stdin.read()
    sent = cpu(resource.RUSAGE_SELF) - used
    server.stop()
    print(sent, cpu(resource.RUSAGE_CHILDREN), flush=True)


class Share(Reader):
    """A part of a file, as a disk."""

    def __init__(self, client: NbdClient, first: int, size: int) -> None:
        super().__init__(client, [(0, size)], None)
        self._first = first

    def read_into(self, offset: int, buffer: memoryview) -> None:
        super().read_into(self._first + offset, buffer)


def cpu(who: int) -> float:
    """Seconds."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
