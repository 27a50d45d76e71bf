"""Has QEMU's connections notice when the host at the other end is dead.

QEMU copies disks to the target of a migration over connections without keep-alive. If the target dies after it has received a
request and before it has answered, nothing is left to be sent, so TCP never notices. QEMU waits for the answer before it resumes
the guest, and both hang for ever (seen with QEMU 7.2). Neither QEMU nor libvirt has an option for this. So keep-alive is switched
on from here, on QEMU's own sockets: see pidfd_getfd(2).
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import socket
from contextlib import suppress
from pathlib import Path

LOG = logging.getLogger(__name__)

# Seconds of silence before the first probe, seconds between probes, and probes without an answer until the peer is dead.
_IDLE, _INTERVAL, _COUNT = 5, 5, 3
# The number is the same on all architectures on which QEMU runs guests.
_PIDFD_GETFD = 438


class PeersOf:
    """The connections of one guest's QEMU. The process is looked for until it is found."""

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self._pids: list[int] = []
        self._is_logged = False

    def watch(self) -> int:
        """Switches keep-alive on for all TCP connections that exist now; returns how many. May be repeated.

        Needs the right to trace QEMU's process. Without it, the log says so, once.
        """
        self._pids = self._pids or processes_of(self._uuid)
        try:
            return sum(_watch(pid) for pid in self._pids)
        except (ProcessLookupError, FileNotFoundError):
            # The process has ended.
            self._pids = []
        except OSError as failure:
            if not self._is_logged:
                LOG.warning(
                    "The connections of guest %s are not watched, so its migration may hang if the target dies: %s",
                    self._uuid,
                    failure,
                )
            self._is_logged = True
        return 0


def processes_of(uuid: str) -> list[int]:
    """The ids of a guest's QEMU processes, found by their command lines."""
    wanted = b"\0-uuid\0" + uuid.encode() + b"\0"
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # A process may end meanwhile.
        with suppress(OSError):
            if wanted in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def _watch(pid: int) -> int:
    process = os.pidfd_open(pid)
    try:
        return sum(_keep_alive(process, number) for number in _sockets(pid))
    finally:
        os.close(process)


def _sockets(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            if str(path.readlink()).startswith("socket:"):
                found.append(int(path.name))
    return found


def _keep_alive(process: int, number: int) -> bool:
    """Switches keep-alive on if this socket of the process is a TCP connection; whether it is one."""
    ours = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, process, number, 0)
    if ours < 0:
        error = ctypes.get_errno()
        if error == errno.EBADF:
            # It has been closed.
            return False
        raise OSError(error, os.strerror(error))
    with socket.socket(fileno=ours) as connection:
        if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
            return False
        try:
            connection.getpeername()
        except OSError:
            # It listens, or its peer has closed it.
            return False
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _INTERVAL)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _COUNT)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return True
