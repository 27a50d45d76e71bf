"""A host that can be cut off from the network: a process in a network namespace of its own.

It keeps its addresses: whatever it reaches on 127.0.0.1 goes through pairs of forwarders, one in the namespace, one outside,
joined by a socket in the file system. Cut off, nothing passes and nobody is notified, as when a cable is pulled: connections stay
open, and what was on its way arrives later, if anybody still waits for it.

``python network_cut.py DIRECTORY PORT...`` runs the forwarders of one side (see `Cable`).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.process_trees import stop

START_SECONDS = 20


def why_not() -> str | None:
    """Why no process can have a namespace of its own here; None if one can."""
    if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("nsenter") and shutil.which("ip"):
        return None
    return "network namespaces need root, unshare, nsenter and ip"


class Cable:
    """Joins a namespace to ports of this machine. `prefix` is what a command begins with to run in the namespace."""

    def __init__(self, directory: Path, ports: Sequence[int]) -> None:
        directory.mkdir()
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._holder.stdout is not None and self._holder.stdout.readline() == b"up\n"
        self.prefix = ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net"]
        forward = [sys.executable, __file__]
        arguments = [str(directory), *(str(port) for port in ports)]
        self._outside = subprocess.Popen([*forward, "outside", *arguments], start_new_session=True)
        _await(lambda: all((directory / str(port)).exists() for port in ports))
        self._inside = subprocess.Popen([*self.prefix, *forward, "inside", *arguments], start_new_session=True)
        _await(lambda: (directory / "inside").exists())

    def cut(self) -> None:
        """Nothing passes from here on."""
        stop(self._outside.pid)

    def repair(self) -> None:
        os.kill(self._outside.pid, signal.SIGCONT)

    def remove(self) -> None:
        """Once nothing runs in the namespace any more."""
        for process in (self._inside, self._outside, self._holder):
            process.kill()
            process.wait(10)


def _await(good: object) -> None:
    end = time.monotonic() + START_SECONDS
    while not good():  # type: ignore[operator]
        assert time.monotonic() < end, "the forwarders do not start"
        time.sleep(0.05)


_joined: set[asyncio.Task[None] | None] = set()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with suppress(OSError, RuntimeError):
        writer.write_eof()


async def _join(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, other: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    # The loop itself holds tasks by weak references only.
    task = asyncio.current_task()
    _joined.add(task)
    try:
        await asyncio.gather(_pump(reader, other[1]), _pump(other[0], writer))
    finally:
        _joined.discard(task)
        writer.close()
        other[1].close()


async def _serve(side: str, directory: Path, ports: Sequence[int]) -> None:
    async def from_namespace(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other = await asyncio.open_unix_connection(directory / str(port))
        except OSError:
            writer.transport.abort()
            return
        await _join(reader, writer, other)

    async def to_machine(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.transport.abort()
            return
        await _join(reader, writer, other)

    for port in ports:
        if side == "inside":
            await asyncio.start_server(partial(from_namespace, port), "127.0.0.1", port)
        else:
            await asyncio.start_unix_server(partial(to_machine, port), directory / str(port))
    if side == "inside":
        (directory / "inside").touch()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], Path(sys.argv[2]), [int(port) for port in sys.argv[3:]]))
