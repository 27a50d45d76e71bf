"""What the story's guests do all the time, so that it shows when they stop, boot or lose something.

Ten times a second a guest sends a tick to an observer outside. Every second or two it checks that the content of its memory and
of its disk (not of the cache) has not changed, writes one more line to the disk, and writes the result to its console::

    TICK id=ID n=N memory=kept disk=kept lines=N

``id`` is made when it boots.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SCRIPT = """\
#!/bin/sh
id=$(cat /proc/sys/kernel/random/uuid)
busybox syslogd -R {observer}:{port}
(while sleep 0.1; do busybox logger "tick $id"; done) &
for place in /run /disk; do head -c 1048576 /dev/urandom > $place/kept; done
: > /disk/ticks
sync
in_memory=$(sha256sum < /run/kept)
on_disk=$(sha256sum < /disk/kept)
(n=0; while sleep 1; do
    n=$((n + 1))
    echo "$n" >> /disk/ticks
    sync
    echo 3 > /proc/sys/vm/drop_caches
    memory=lost; [ "$(sha256sum < /run/kept)" = "$in_memory" ] && memory=kept
    disk=lost; [ "$(sha256sum < /disk/kept)" = "$on_disk" ] && disk=kept
    echo "TICK id=$id n=$n memory=$memory disk=$disk lines=$(grep -c . /disk/ticks)" > /dev/console
done) &
"""
_LINE = re.compile(r"^TICK id=(\S+) n=(\d+) memory=(\S+) disk=(\S+) lines=(\d+)\s*$", re.M)


@dataclass(frozen=True)
class Tick:
    """``id``: that of the boot; ``lines``: how many the guest finds on its disk, one for each tick."""

    id: str
    n: int
    memory: str
    disk: str
    lines: int


def script(observer: str, port: int) -> str:
    """The user data of a guest that ticks to an observer."""
    return _SCRIPT.format(observer=observer, port=port)


def last_tick(console: str) -> Tick | None:
    """The last tick that a guest has written completely; None if there is none."""
    found = _LINE.findall(console[: console.rfind("\n") + 1])
    if not found:
        return None
    identity, n, memory, disk, lines = found[-1]
    return Tick(identity, int(n), memory, disk, int(lines))
