"""Keep-alive is switched on for connections of another process."""

from __future__ import annotations

import socket
import subprocess
import sys
import uuid as uuids

import pytest

pytest.importorskip("libvirt")

from causeway.virt.libvirt.live.dead_peers import PeersOf, processes_of

# A process with a connection, a socket that listens, and one of another family.
CHILD = """
import socket, sys
to = socket.create_connection(("127.0.0.1", int(sys.argv[-1])))
listens, pair = socket.create_server(("127.0.0.1", 0)), socket.socketpair()
print("connected", flush=True)
sys.stdin.read()
print(to.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), to.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT))
print(listens.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
"""


def test_the_connections_of_a_guest_are_watched() -> None:
    uuid = str(uuids.uuid4())
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = [sys.executable, "-c", CHILD, "-uuid", uuid, str(server.getsockname()[1])]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None and process.stdout is not None
            assert process.stdout.readline() == "connected\n"
            assert processes_of(uuid) == [process.pid]
            peers = PeersOf(uuid)
            assert (peers.watch(), peers.watch()) == (1, 1)
            said, _ = process.communicate("")
            assert said.splitlines() == ["1 3", "0"]
    assert peers.watch() == 0


def test_a_guest_without_a_process_has_none() -> None:
    assert PeersOf(str(uuids.uuid4())).watch() == 0
