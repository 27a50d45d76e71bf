"""Serves a disk that no guest uses over NBD, to read and write its blocks: QEMU's tool knows the format of the file."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from causeway.errors import GuestFailed
from causeway.virt.libvirt.storage.nbd import LARGEST, NbdClient

_START_SECONDS, _END_SECONDS = 20.0, 60.0
# Bytes of memory: the tables of an image that a user made are not trusted.
_MEMORY = 2 << 30
EXPORT = "disk"
# QEMU allocates a buffer for each request. The C library would return each to the system, and new pages cost more than the copy.
_ENVIRONMENT = {
    "MALLOC_MMAP_THRESHOLD_": str(64 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    "MALLOC_TOP_PAD_": str(16 << 20),
}


@contextmanager
def served(
    disk: Path | str,
    disk_format: str,
    contexts: tuple[str, ...] = (),
    *,
    bitmap: str | None = None,
    writable: bool = False,
) -> Iterator[NbdClient]:
    """A client of a server of the disk, which ends with the context, and with this process. ``bitmap``: offered as a context.

    ``disk``: a file, or what QEMU reaches by such a name.

    Raises `GuestFailed` if the disk can't be served.
    """
    with tempfile.TemporaryDirectory(prefix="causeway-nbd-") as folder:
        path = Path(folder) / "socket"
        options = ["--discard=unmap", "--cache=writeback"] if writable else ["-r"]
        if bitmap is not None:
            options += ["-B", bitmap]
        # qemu-nbd ends with its client, and with this process if there never is a client.
        command = [
            "setpriv",
            "--pdeathsig",
            "TERM",
            *("prlimit", f"--as={_MEMORY}", "--core=0"),
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
        server = subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | _ENVIRONMENT,
        )
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
                    # It hangs. It must not write to the disk later.
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
                return NbdClient(path, EXPORT, contexts, read_size=LARGEST)
            except GuestFailed as failure:
                # The socket exists a moment before the server listens on it.
                if not isinstance(failure.__cause__, ConnectionRefusedError):
                    raise
        if server.poll() is not None or time.monotonic() >= end:
            said = server.stdout.read() if server.poll() is not None and server.stdout is not None else b""
            raise GuestFailed("'qemu-nbd' can't serve a disk.", details=said.decode(errors="replace")[-1000:])
        with suppress(subprocess.TimeoutExpired):
            server.wait(0.01)
