"""A script that tries whether the hypervisor of another host can be reached from where it runs.

It runs where the source's libvirtd runs, which is what connects to the target. It is a process of its own because a connection
that hangs can't be ended in a thread.
"""

from __future__ import annotations

import socket
import sys

import libvirt

# Seconds. QEMU will connect to QEMU, which does not listen before a guest arrives. A host that can be reached refuses at once.
_CONNECT_SECONDS = 3.0


def main(uri: str, address: str, port: str) -> None:
    try:
        socket.create_connection((address, int(port)), timeout=_CONNECT_SECONDS).close()
    except ConnectionRefusedError:
        pass
    except OSError as failure:
        sys.exit(f"{address} port {port}: {failure}")
    libvirt.registerErrorHandler(lambda _context, _error: None, None)
    try:
        libvirt.open(uri).getVersion()
    except libvirt.libvirtError as failure:
        sys.exit(f"{uri}: {failure}")


if __name__ == "__main__":
    main(*sys.argv[1:])
