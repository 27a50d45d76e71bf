"""What simulated guests do while they run: they write to their local root disk and change their memory, at a rate.

Nobody does that for them: whoever is about to look at a guest has it *catch up* with the clock first. Write number N goes to
block ``N % BLOCKS`` of its disk, with content that follows from N and the guest; its memory knows the number of the last one
(a line ``written=N``). So whoever looks from outside sees whether the disk has every write, in its last state, and whether
memory and disk are of the same moment (`faults`).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from causeway import durable
from causeway.model.states import PowerState
from causeway.virt.simulated import disk
from causeway.virt.simulated.guest import Guest

_COUNT = "written="


def boot(guest: Guest, now: float) -> None:
    """It has booted: it continues writing where its disk ends."""
    path = _root_disk(guest)
    if path is not None and (guest.data or guest.disk_rate):
        found = disk.load(path)
        if found.header.written is None:
            found.header.written = disk.Written(
                int(guest.data), [block(guest.uuid, at) for at in range(disk.BLOCKS)], now
            )
            durable.write(path, found.encode())
        _remember(guest, found.header.written.count)
    resume(guest, now)


def resume(guest: Guest, now: float) -> None:
    """It runs from now on; it knows for how long it did not."""
    path = _root_disk(guest)
    written = disk.load(path).header.written if path is not None else None
    guest.stood_still = None if written is None else max(0.0, now - written.at)
    guest.caught_up = now


def stop(guest: Guest) -> None:
    """It does not run from now on."""
    guest.caught_up = None


def catch_up(guest: Guest, now: float, share: float = 1.0) -> bool:
    """It has run until now, at a share of its speed; whether it has done anything. Who calls saves it."""
    if guest.power_state is not PowerState.RUNNING or guest.going_to is not None or guest.caught_up is None:
        return False
    path = _root_disk(guest)
    found = disk.load(path) if path is not None else None
    if path is None or found is None or found.header.written is None:
        return False
    rate, written = guest.disk_rate * share, found.header.written
    writes = int(max(0.0, now - guest.caught_up) * rate / disk.WRITE)
    before = written.count
    for number in range(max(before + 1, before + writes - disk.BLOCKS + 1), before + writes + 1):
        written.blocks[number % disk.BLOCKS] = block(guest.uuid, number)
    # What was less than a write is not lost.
    guest.caught_up = now if not writes else guest.caught_up + writes * disk.WRITE / rate
    if not rate:
        guest.caught_up = now
    written.at = now
    durable.write(path, found.encode())
    _remember(guest, before + writes)
    return True


def block(uuid: str, number: int) -> str:
    """What a block has after a write; below `BLOCKS`: what it had in the beginning."""
    return f"{number} {hashlib.blake2b(f'{uuid} {number}'.encode(), digest_size=8).hexdigest()}"


def writes(guest: Guest) -> int:
    """How often it has written, as its disk shows."""
    path = _root_disk(guest)
    written = disk.load(path).header.written if path is not None else None
    return 0 if written is None else written.count + 1 - disk.BLOCKS


def known_count(guest: Guest) -> int | None:
    """The number of its last write, as its memory knows it."""
    return next((int(line.removeprefix(_COUNT)) for line in guest.memory if line.startswith(_COUNT)), None)


def faults(guest: Guest) -> list[str]:
    """What a look from outside shows to be wrong: writes that are missing on its disk, or that its memory does not know of."""
    path = _root_disk(guest)
    written = disk.load(path).header.written if path is not None else None
    if written is None:
        return []
    last = written.count
    found = [
        f"block {at} has {there}, not {wanted}"
        for at, there in enumerate(written.blocks)
        if there != (wanted := block(guest.uuid, last - (last - at) % disk.BLOCKS))
    ]
    known = known_count(guest)
    if known is not None and known != last:
        found.append(f"its memory knows of {known} writes, its disk has {last}")
    return found


def _remember(guest: Guest, writes: int) -> None:
    guest.memory = [line for line in guest.memory if not line.startswith(_COUNT)] + [f"{_COUNT}{writes}"]


def _root_disk(guest: Guest) -> Path | None:
    return Path(guest.root_disk) if guest.root_disk is not None else None
