"""A disk that no guest uses, served to ourselves for a while: QEMU's tool knows its format, and we read and write blocks."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from causeway.errors import GuestFailed
from causeway.virt.libvirt.nbd import NbdClient

_START_SECONDS, _END_SECONDS = 20.0, 60.0
EXPORT = "disk"


@contextmanager
def served(
    disk: Path, disk_format: str, contexts: tuple[str, ...] = (), *, bitmap: str | None = None, writable: bool = False
) -> Iterator[NbdClient]:
    """``bitmap``: of the disk, to be offered as a context. Ended when this is left, and when our process dies."""
    with tempfile.TemporaryDirectory(prefix="causeway-nbd-") as folder:
        path = Path(folder) / "socket"
        options = ["--discard=unmap", "--cache=writeback"] if writable else ["-r"]
        if bitmap is not None:
            options += ["-B", bitmap]
        # It ends with its client; if there never is one, with us.
        command = [
            "setpriv",
            "--pdeathsig",
            "TERM",
            "qemu-nbd",
            "-k",
            path,
            "-x",
            EXPORT,
            "-f",
            disk_format,
            *options,
            disk,
        ]
        server = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            with _connected(server, path, contexts) as client:
                yield client
            server.wait(_END_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise GuestFailed(f"'qemu-nbd' did not end for {disk}.") from error
        finally:
            if server.poll() is None:
                server.terminate()
                try:
                    server.wait(_END_SECONDS)
                except subprocess.TimeoutExpired:
                    # It hangs at its file; nobody else may find it at that one later.
                    server.kill()
                    with suppress(subprocess.TimeoutExpired):
                        server.wait(_END_SECONDS)
            if server.stdout is not None:
                server.stdout.close()


def _connected(server: subprocess.Popen[bytes], path: Path, contexts: tuple[str, ...]) -> NbdClient:
    end = time.monotonic() + _START_SECONDS
    while True:
        if path.exists():
            try:
                return NbdClient(path, EXPORT, contexts)
            except GuestFailed as failure:
                # The socket has its name a moment before it is listened on.
                if not isinstance(failure.__cause__, ConnectionRefusedError):
                    raise
        if server.poll() is not None or time.monotonic() >= end:
            said = server.stdout.read() if server.poll() is not None and server.stdout is not None else b""
            raise GuestFailed("'qemu-nbd' can't serve a disk.", details=said.decode(errors="replace")[-1000:])
        with suppress(subprocess.TimeoutExpired):
            server.wait(0.01)
