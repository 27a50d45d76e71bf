"""``python -m benchmarks.copying [--link SPEED] [--tls]``: what bounds the copying of disks from host to host while guests run.

Disks of random data go the way that a round takes: QEMU's server reads them, the source's process makes streams of their parts
and serves these over HTTP, the target's fetches, checks and writes them through another server of QEMU. What each of them takes
of the CPU is the limit of two hosts; on one machine all of them share it. ``cp`` of the same file, with its flush, is beside it.

Without ``--link`` all of it is on this machine's own network. With it the two hosts are in network namespaces, joined by a link
of that speed (needs root). Beside it is what a plain connection carries through that link: headers take 4.4 per cent of it.
Several disks go at the same time, each with a part of the data, as those of several servers do.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.copying_ends import OFF, Took, cpu
from benchmarks.scale.ending import nothing_left
from benchmarks.shaped_link import SOURCE, TARGET, Link, NoLink, bits_of, shaped_link
from causeway.virt.lab.certificates import Authority

MIB = 2**20
LOCAL = "127.0.0.1"


@dataclass
class Found:
    """How long the copies took, and each side's share of it. ``plain``: MiB/s of a plain connection."""

    seconds: float
    plain: float
    source: Took
    target: Took

    def shares(self) -> dict[str, float]:
        return {
            "source: QEMU reads": self.source.qemu,
            "source: our process": self.source.own,
            "target: our process": self.target.own,
            "target: QEMU writes": self.target.qemu,
        }


def a_speed(_context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    try:
        if given is not None:
            bits_of(given)
    except ValueError as failure:
        raise click.BadParameter(str(failure)) from failure
    return given


@click.command()
@click.option("--mib", default=1024, show_default=True, help="MiB of random data.")
@click.option("--disks", default=1, show_default=True, help="Disks that go at the same time.")
@click.option(
    "--link", callback=a_speed, help="Between two namespaces: 1G, 10G, unlimited, or another speed in bits a second."
)
@click.option("--tls", is_flag=True, help="As with [DEFAULT] disk_transfer_tls = required.")
@click.option("--times", default=1, show_default=True, help="How often.")
def main(mib: int, disks: int, link: str | None, tls: bool, times: int) -> None:
    """Copies disks and says who took how long for it (needs qemu-img and qemu-nbd)."""
    title = f"{mib} MiB of random data, {disks} at a time{', TLS' if tls else ''}, link: {link or 'none'}"
    table = Table("", "MiB/s", "of the link", "CPU, s/GiB", title=title)
    with nothing_left("copying-") as folder:
        file = folder / "source"
        with file.open("wb") as made:
            for _ in range(mib):
                made.write(os.urandom(MIB))
            os.fsync(made.fileno())
        for number in range(times):
            run = folder / str(number)
            run.mkdir()
            add_rows(table, run, file, mib, disks, link=link, tls=tls)
    Console().print(table)


def add_rows(table: Table, folder: Path, file: Path, mib: int, disks: int, *, link: str | None, tls: bool) -> None:
    seconds, used = by_cp(file, folder / "copy")
    table.add_row("cp and sync", f"{mib / seconds:.0f}", "", f"{used * 1024 / mib:.2f}")
    try:
        with joined(link) as ends:
            found = by_rounds(file, folder, mib * MIB, disks, ends, is_linked=link is not None, tls=tls)
    except NoLink as failure:
        raise click.ClickException(f"There can be no link here: {failure}") from failure

    def of_link(speed: float) -> str:
        return f"{speed * MIB * 8 / ends.bits:.1%}" if ends.bits is not None else ""

    table.add_row("a plain connection", f"{found.plain:.0f}", of_link(found.plain), "")
    speed, shares = mib / found.seconds, found.shares()
    table.add_row("a round", f"{speed:.0f}", of_link(speed), f"{sum(shares.values()) * 1024 / mib:.2f}")
    for what, took in shares.items():
        table.add_row(f"  {what}", "", "", f"{took * 1024 / mib:.2f}")


@contextmanager
def joined(link: str | None) -> Iterator[Link]:
    if link is None:
        yield Link(None, [], [])
        return
    with shaped_link(link) as ends:
        yield ends


def by_cp(source: Path, copy: Path) -> tuple[float, float]:
    """Seconds, and seconds of the CPU."""
    began, used = time.monotonic(), cpu(resource.RUSAGE_CHILDREN)
    subprocess.run(["cp", source, copy], check=True)
    subprocess.run(["sync", copy], check=True)
    found = time.monotonic() - began, cpu(resource.RUSAGE_CHILDREN) - used
    copy.unlink()
    return found


def by_rounds(file: Path, folder: Path, size: int, disks: int, ends: Link, *, is_linked: bool, tls: bool) -> Found:
    address = SOURCE if is_linked else LOCAL
    folders, pki = [folder / "source", folder / "target"], [OFF, OFF]
    for number, own in enumerate((address, TARGET if is_linked else LOCAL)):
        folders[number].mkdir()
        if tls:
            pki[number] = str(folders[number] / "pki")
            Authority(folder / "authority").ensure("host", own, Path(pki[number]))
    program = [sys.executable, "-W", "ignore", "-m", "benchmarks.copying_ends"]
    serve = [*ends.source, *program, "source", str(folders[0]), str(file), str(size), str(disks), address, pki[0]]
    fetch = [*ends.target, *program, "target", str(folders[1]), pki[1]]
    with started(serve) as source, started(fetch) as target:
        orders = ask(source)
        # A second of the link, or as much as the round has.
        plain = int(min(size, ends.content)) if ends.content is not None else size
        ask(target, orders, str(plain))
        ask(source, "begin")
        received = msgspec.json.decode(ask(target, "begin"), type=Took)
        sent = msgspec.json.decode(ask(source, "end"), type=Took)
    return Found(received.seconds, received.plain, sent, received)


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            if process.stdin is not None:
                process.stdin.close()


def ask(process: subprocess.Popen[str], *lines: str) -> str:
    """Says these lines to a host; returns the line that it answers."""
    assert process.stdin is not None and process.stdout is not None
    for line in lines:
        process.stdin.write(line.strip() + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise click.ClickException(f"A host ended before it was done: {' '.join(process.args)}")  # type: ignore[arg-type]
    return answer


if __name__ == "__main__":
    main()
