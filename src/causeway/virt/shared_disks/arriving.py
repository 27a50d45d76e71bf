"""Disks that arrive round by round in a store that several hosts reach, before they are any guest's.

The copy is in the store from the beginning, under a name with the move's id, and has no owner. In the place of its file is a note
with that name::

    COPIES/MOVE.SERVER/disk                {"name": "SERVER_disk.arriving.MOVE"}

The note is there before the disk is, and until the disk is a guest's (`SharedDisks.adopt`) or deleted: so a copy that nobody
completes is always found.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from causeway import durable
from causeway.model.shared_disk import ARRIVING
from causeway.virt.driver import DiskCopy
from causeway.virt.shared_disks.store import SharedStore

# Bytes of a note.
_MOST = 4096


class _Note(msgspec.Struct):
    name: str


def named_in(path: Path) -> str | None:
    """The name in the store of the copy at ``path``. None: it is not in the store, or was not begun."""
    try:
        if path.stat().st_size > _MOST:
            # The copy itself: it was begun before the host had the store.
            return None
        name = msgspec.json.decode(path.read_bytes(), type=_Note).name
    except (FileNotFoundError, msgspec.MsgspecError):
        return None
    return name if ARRIVING in name else None


def begin(store: SharedStore, copy: DiskCopy) -> str:
    """Notes a copy, unless it is noted. Returns its name in the store."""
    name = named_in(copy.path)
    if name is None:
        name = f"{copy.uuid}_{copy.path.name}{ARRIVING}{copy.operation_id[:8]}"
        # Of an earlier attempt, whose note was lost.
        store.remove(name)
        durable.write(copy.path, msgspec.json.encode(_Note(name)))
    return name


def exists(store: SharedStore, path: Path) -> bool:
    name = named_in(path)
    return path.exists() if name is None else store.find(name) is not None


def discard(store: SharedStore, path: Path) -> None:
    """Deletes a copy with its note. Raises `GuestFailed` while somebody writes to it."""
    name = named_in(path)
    if name is not None:
        store.remove(name)
        durable.delete(path)
