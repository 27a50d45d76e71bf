"""A real Open vSwitch (userspace datapath) with ports of guests, in namespaces of its own: a program.

    unshare --net --mount python -m tests.integration.libvirt.switch_of_its_own FOLDER

Frames stand for guests: whoever holds a tap device sends and gets them as QEMU does. Prints what it saw, as JSON.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from causeway.model.network import Vif
from causeway.virt.libvirt.network import Ports

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
_PLACE = Path("/run/openvswitch")
# os-vif looks for it there, if its options say nothing else.
_REMOTE = "--remote=ptcp:6640:127.0.0.1"
_TUNSETIFF, _TAP, _NO_HEAD = 0x400454CA, 0x0002, 0x1000
_KIND, _TEXT = b"\x88\xb5", b"a frame of the test"
_PATIENCE = 60.0
# How often a frame is sent, and for how long each is awaited.
_TRIES = 40
_TRY_SECONDS = 0.25


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout


def vif(number: int) -> Vif:
    return Vif(
        id=f"{number}2222222-2222-3333-4444-555555555555",
        address=f"fa:16:3e:00:00:0{number}",
        network_id="network",
        vif_type="ovs",
        details={"datapath_type": "netdev"},
    )


@contextmanager
def switch(folder: Path) -> Iterator[None]:
    _PLACE.mkdir(exist_ok=True)
    run("mount", "--make-rprivate", "/")
    run("mount", "--bind", str(folder), str(_PLACE))
    run("ip", "link", "set", "lo", "up")
    run("ovsdb-tool", "create", str(_PLACE / "conf.db"), str(SCHEMA))
    remotes = (f"--remote=punix:{_PLACE}/db.sock", _REMOTE)
    database = ["ovsdb-server", str(_PLACE / "conf.db"), *remotes, f"--unixctl={_PLACE}/ovsdb.ctl"]
    daemon = ["ovs-vswitchd", f"unix:{_PLACE}/db.sock", f"--unixctl={_PLACE}/vswitchd.ctl"]
    with subprocess.Popen(database, stderr=subprocess.DEVNULL) as first:
        try:
            end = time.monotonic() + _PATIENCE
            while not (_PLACE / "db.sock").exists():
                if time.monotonic() > end or first.poll() is not None:
                    raise RuntimeError("the switch's database did not start")
                time.sleep(0.05)
            run("ovs-vsctl", "--no-wait", "init")
            with subprocess.Popen(daemon, stderr=subprocess.DEVNULL) as second:
                try:
                    bridge = ("add-br", "br-int", "--", "set", "bridge", "br-int", "datapath_type=netdev")
                    run("ovs-vsctl", "--timeout=50", *bridge)
                    yield
                finally:
                    second.kill()
        finally:
            first.kill()


def held(port: Vif) -> int:
    """The port's tap device as QEMU holds it."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", port.devname.encode(), _TAP | _NO_HEAD))
    run("ip", "link", "set", port.devname, "up")
    return device


def started(port: Vif) -> int:
    """A guest as libvirt starts it with a port of Open vSwitch: the port goes and comes back in one transaction."""
    device, name = held(port), port.devname
    interface = ("set", "Interface", name, f"external-ids:iface-id={port.id}")
    again = ("--if-exists", "del-port", name, "--", "add-port", "br-int", name)
    run("ovs-vsctl", "--timeout=50", "--", *again, "--", *interface)
    return device


def ended_of_nova(port: Vif, device: int) -> None:
    """A guest that Nova made has a port of type `ethernet`: libvirt deletes the device, and does not know of the switch."""
    os.close(device)
    run("ip", "link", "delete", port.devname)


def reaches(sender: tuple[Vif, int], receiver: tuple[Vif, int]) -> bool:
    addresses = bytes.fromhex((receiver[0].address + sender[0].address).replace(":", ""))
    frame = (addresses + _KIND + _TEXT).ljust(60, b"\0")
    for _ in range(_TRIES):
        os.write(sender[1], frame)
        end = time.monotonic() + _TRY_SECONDS
        while (left := end - time.monotonic()) > 0 and select.select([receiver[1]], [], [], left)[0]:
            if os.read(receiver[1], 2000)[:60] == frame:
                return True
    return False


def seen() -> dict[str, Any]:
    ports, here, other = Ports(None), vif(1), vif(2)
    sent: list[Any] = []

    def counted(session: Any, message: Any) -> Any:
        if message.method == "transact":
            sent.append(message)
        return send(session, message)

    def transactions(port: Vif) -> int:
        sent.clear()
        ports.plug("server", port)
        return len(sent)

    # The first one also learns what the database looks like.
    ports.plug("server", vif(3))
    # os-vif's library for the database, which is no dependency of ours.
    session: Any = sys.modules["ovs.jsonrpc"].Session
    send, session.send = session.send, counted
    found: dict[str, Any] = {"new": transactions(here), "again": transactions(here)}
    ports.plug("another", other)
    me, nova = (here, started(here)), (other, held(other))
    found["before"] = [reaches(me, nova), reaches(nova, me)]
    ended_of_nova(*nova)
    found["left"] = other.devname in run("ovs-vsctl", "list-ports", "br-int").split()
    found["stale"] = transactions(other)
    ours = (other, started(other))
    found["after"] = [reaches(me, ours), reaches(ours, me)]
    return found


if __name__ == "__main__":
    with switch(Path(sys.argv[1])):
        print(json.dumps(seen()))
