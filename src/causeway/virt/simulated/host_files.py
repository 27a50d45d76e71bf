"""What a simulated host keeps: guests and disks, as small files.

::

    STATE_DIR/guests/UUID.json            a guest known to the hypervisor, and its power state
    STATE_DIR/instances/UUID/disk         its root disk (none if that is a volume)
    STATE_DIR/instances/UUID/disk.eph0    an ephemeral disk; disk.swap: its swap
    STATE_DIR/instances/UUID/console.log  what it wrote to its console
    STATE_DIR/instances/UUID/disk.config  its config drive
    STATE_DIR/instances/UUID_resize/      the same, stashed by a move
    STATE_DIR/exports/                    copies on their way to somebody else
"""

from __future__ import annotations

import shutil
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from causeway import durable
from causeway.errors import GuestFailed
from causeway.model.states import PowerState
from causeway.virt.simulated.guest import Guest

STASHED = "_resize"
_GUESTS = msgspec.json.Decoder(Guest)


class HostFiles:
    """The files of one host in ``state_dir``, and its guests in memory. Who changes a guest or its disks has its lock."""

    def __init__(self, hostname: str, state_dir: Path) -> None:
        self._hostname = hostname
        self._guests_dir = state_dir / "guests"
        self.disks_dir = state_dir / "instances"
        self.exports_dir = state_dir / "exports"
        self.guests: dict[str, Guest] = {}
        self._lock = threading.Lock()
        self._locks: dict[str, threading.RLock] = defaultdict(threading.RLock)

    def load(self) -> None:
        """What an earlier life of the host left; exports end with it."""
        shutil.rmtree(self.exports_dir, ignore_errors=True)
        for directory in (self._guests_dir, self.disks_dir, self.exports_dir):
            durable.make_folder(directory)
        durable.discard_unfinished(self._guests_dir)
        for path in self._guests_dir.glob("*.json"):
            try:
                guest = durable.read(path, _GUESTS.decode)
            except durable.Torn:
                # As with a hypervisor that lost a definition: the disks are there, a hard reboot makes the guest anew.
                continue
            if guest is not None:
                self.guests[guest.uuid] = guest

    def list_guests(self) -> dict[str, PowerState]:
        with self._lock:
            return {uuid: guest.power_state for uuid, guest in self.guests.items()}

    def list_disks(self) -> dict[str, bool]:
        """uuid -> whether stashed disks are there, of every server that has disks of either kind."""
        names = {path.name for path in self.disks_dir.iterdir()}
        return {name.removesuffix(STASHED): name.removesuffix(STASHED) + STASHED in names for name in names}

    @contextmanager
    def undone_on_failure(self, uuid: str, guest: Guest | None) -> Iterator[None]:
        """Puts back the guest and the disks that were there if an attempt to make the guest fails."""
        disks = self.disks(uuid)
        kept = {path: path.read_bytes() for path in disks.iterdir()} if disks.is_dir() else None
        durable.make_folder(disks)
        try:
            yield
        except BaseException:
            if kept is None:
                durable.delete_tree(disks)
            else:
                _put_back(disks, kept)
            if guest is None:
                self.undefine(uuid)
            else:
                self.save(guest)
            raise

    def refuse_if_defined(self, uuid: str, what: str) -> None:
        if uuid in self.guests:
            raise GuestFailed(
                f"The disks of {uuid} can't be {what} while the hypervisor knows the guest.", details=self._hostname
            )

    def save(self, guest: Guest) -> None:
        durable.write(self._guests_dir / f"{guest.uuid}.json", msgspec.json.encode(guest))
        with self._lock:
            self.guests[guest.uuid] = guest

    def undefine(self, uuid: str) -> None:
        durable.delete(self._guests_dir / f"{uuid}.json")
        with self._lock:
            self.guests.pop(uuid, None)

    def append_to_console(self, uuid: str, text: str) -> None:
        with (self.disks(uuid) / "console.log").open("a") as console:
            console.write(text)

    def locked(self, uuid: str) -> threading.RLock:
        with self._lock:
            return self._locks[uuid]

    def disks(self, uuid: str) -> Path:
        return self.disks_dir / uuid

    def stash(self, uuid: str) -> Path:
        return self.disks_dir / f"{uuid}{STASHED}"


def running_in(hosts_dir: Path, uuid: str) -> list[str]:
    """The names of the hosts that run a guest, among those that keep their state in a directory of ``hosts_dir``."""
    hosts = []
    for path in hosts_dir.glob(f"*/guests/{uuid}.json"):
        try:
            guest = _GUESTS.decode(path.read_bytes())
        except (FileNotFoundError, msgspec.MsgspecError):
            # A torn one is its host's to put aside.
            continue
        if guest.power_state is PowerState.RUNNING:
            hosts.append(guest.host)
    return sorted(hosts)


def _put_back(directory: Path, kept: dict[Path, bytes]) -> None:
    """Makes the files of a directory what they were; those that did not change are not touched."""
    for path in directory.iterdir():
        if path not in kept:
            path.unlink()
    for path, content in kept.items():
        if not path.exists() or path.read_bytes() != content:
            durable.write(path, content)
