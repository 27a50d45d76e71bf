"""What simulated guests do while they run: they write to their local root disk and change their memory, at a rate.

No thread does this. Before anybody looks at a guest, the guest *catches up* with the clock. Write number N goes to block ``N %
BLOCKS`` of the disk, with a content that follows from N and the guest. The memory has the number of the last write (a line
``written=N``). So one look from outside shows whether the disk has every write, and whether memory and disk are of the same
moment (`faults`).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from causeway.model.states import PowerState
from causeway.virt.simulated import disk
from causeway.virt.simulated.guest import Guest

_COUNT = "written="


def boot(guest: Guest, now: float) -> None:
    """The guest has booted: it continues to write after the last write on its disk. ``now``: the time on the host's clock."""
    guest.write_limit = None
    path = _root_disk(guest)
    if path is not None and (guest.data or guest.disk_rate):
        found = disk.load(path)
        if found.header.written is None:
            found.header.written = disk.Written(
                int(guest.data), [block(guest.uuid, at) for at in range(disk.BLOCKS)], now
            )
            disk.save(path, found)
        _remember(guest, found.header.written.count)
    resume(guest, now)


def resume(guest: Guest, now: float) -> None:
    """The guest runs from now on. It records for how long it did not."""
    path = _root_disk(guest)
    written = disk.load(path).header.written if path is not None else None
    guest.stood_still = None if written is None else max(0.0, now - written.at)
    guest.caught_up = now


def stop(guest: Guest) -> None:
    """The guest does not run from now on."""
    guest.caught_up = None


def catch_up(guest: Guest, now: float, share: float = 1.0) -> bool:
    """The guest has run until now, at ``share`` of its speed. True: it has changed, and the caller must save it."""
    if guest.power_state is not PowerState.RUNNING or guest.going_to is not None or guest.caught_up is None:
        return False
    path = _root_disk(guest)
    found = disk.load(path) if path is not None else None
    if path is None or found is None or found.header.written is None:
        return False
    limit = guest.disk_rate if guest.write_limit is None else guest.write_limit
    rate, written = min(guest.disk_rate * share, limit), found.header.written
    writes = int(max(0.0, now - guest.caught_up) * rate / disk.WRITE)
    before = written.count
    for number in range(max(before + 1, before + writes - disk.BLOCKS + 1), before + writes + 1):
        written.blocks[number % disk.BLOCKS] = block(guest.uuid, number)
    # The part of a write that remains counts for the next time.
    guest.caught_up = now if not writes else guest.caught_up + writes * disk.WRITE / rate
    if not rate:
        guest.caught_up = now
    written.at = now
    disk.save(path, found)
    _remember(guest, before + writes)
    return True


def block(uuid: str, number: int) -> str:
    """The content of a block after write ``number``. Numbers below `BLOCKS` are its content at the beginning."""
    return f"{number} {hashlib.blake2b(f'{uuid} {number}'.encode(), digest_size=8).hexdigest()}"


def writes(guest: Guest) -> int:
    """How often the guest has written, according to its disk."""
    path = _root_disk(guest)
    written = disk.load(path).header.written if path is not None else None
    return 0 if written is None else written.count + 1 - disk.BLOCKS


def known_count(guest: Guest) -> int | None:
    """The number of the last write, according to the guest's memory."""
    return next((int(line.removeprefix(_COUNT)) for line in guest.memory if line.startswith(_COUNT)), None)


def faults(guest: Guest) -> list[str]:
    """What is wrong with the guest: writes that are missing on its disk, or that its memory does not know."""
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
