"""Free ports for servers of tests' own."""

from __future__ import annotations

import random
import socket

# Below the ports that the kernel gives to clients: a server that is stopped for a while finds its port free again, and nobody
# who tries to reach it meanwhile is connected to itself.
FIRST, LAST = 10000, 32000


def free_ports(number: int) -> list[int]:
    """Ports that nobody had a moment ago."""
    sockets: list[socket.socket] = []
    while len(sockets) < number:
        try:
            sockets.append(socket.create_server(("127.0.0.1", random.randint(FIRST, LAST))))
        except OSError:
            continue
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def free_port() -> int:
    return free_ports(1)[0]
