"""The first process of a lab host, run as a script: ``host_init.py ROOT NAME LIBVIRTD...``.

It starts in namespaces of its own (mounts, host name, network), mounts the host's folders where libvirt looks for them, and keeps
libvirtd running: if libvirtd dies it is started again, as by a service manager. SIGTERM ends libvirtd and, when no guest is left,
this process. Guests are its children (it is a "child subreaper"), so they outlive libvirtd, and are reaped at once: libvirt waits
until a killed guest has disappeared.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

_PR_SET_CHILD_SUBREAPER = 36
_BINDS = {
    "run": "/run/libvirt",
    "lib": "/var/lib/libvirt",
    "cache": "/var/cache/libvirt",
    "log": "/var/log/libvirt",
    "etc": "/etc/libvirt",
    # libvirtd looks up its own name when it starts a guest. A name service that can't be reached would cost seconds.
    "hosts": "/etc/hosts",
    "resolv.conf": "/etc/resolv.conf",
}
# A libvirtd that dies sooner after its start is not started again: it would die again.
_SHORT_LIFE_SECONDS = 1.0


def main(root: str, name: str, command: list[str]) -> int:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    socket.sethostname(name)
    for folder, place in _BINDS.items():
        if not Path(place).exists():
            continue
        subprocess.run(["mount", "--bind", f"{root}/{folder}", place], check=True, timeout=10)
    stopping = False
    daemon = os.posix_spawn(command[0], command, os.environ)
    started = time.monotonic()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        if daemon:
            os.kill(daemon, signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            ended, _ = os.wait()
        except ChildProcessError:
            return 0
        if ended != daemon:
            continue
        daemon = 0
        if not stopping and time.monotonic() - started >= _SHORT_LIFE_SECONDS:
            started = time.monotonic()
            daemon = os.posix_spawn(command[0], command, os.environ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
