"""Whether one host's hypervisor reaches another's: tried from where the source's libvirtd runs, for it connects to the target.

Run as a script it is the try itself: a process of its own, because a connection that hangs can't be broken off in a thread.
"""

from __future__ import annotations

import socket
import sys

import libvirt

# QEMU connects to QEMU; nobody listens at the target before a guest comes, but a host that can be reached says so.
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
