"""Free ports for servers of tests' own."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path

# Below the ports that the kernel gives to clients: a server that is stopped for a while finds its port free again, and nobody
# who tries to reach it meanwhile is connected to itself.
FIRST, LAST = 10000, 32000
# Of this process, until its end.
_reserved: set[int] = set()


def free_ports(number: int) -> list[int]:
    """Ports that nobody uses, and that no other process of tests gets while this one runs."""
    ports: list[int] = []
    while len(ports) < number:
        port = random.randint(FIRST, LAST)
        if _reserve(port) and _is_free(port):
            ports.append(port)
    return ports


def free_block(number: int) -> range:
    """So many ports in a row."""
    while True:
        ports = range(first := random.randint(FIRST, LAST - number), first + number)
        if all(_reserve(port) and _is_free(port) for port in ports):
            return ports


def free_port() -> int:
    return free_ports(1)[0]


def _reserve(port: int) -> bool:
    """By a lock on the byte of that number of a file that all processes share; it ends with the process, however that ends."""
    if port in _reserved:
        return False
    try:
        fcntl.lockf(_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _reserved.add(port)
    return True


@cache
def _locks() -> int:
    # It stays open: closing it would release all locks.
    path = Path(tempfile.gettempdir()) / f"causeway-test-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
