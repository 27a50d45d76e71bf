"""What a simulated host keeps: guests and disks, as small files.

::

    STATE_DIR/owner                       the name of the host (`causeway.virt.folder_owner`)
    STATE_DIR/guests/UUID.json            a guest known to the hypervisor, and its power state
    STATE_DIR/instances/UUID/disk         its root disk (none if that is a volume)
    STATE_DIR/instances/UUID/disk.eph0    an ephemeral disk; disk.swap: its swap
    STATE_DIR/instances/UUID/disk.rescue  what it boots from while it is rescued
    STATE_DIR/instances/UUID/console.log  what it wrote to its console
    STATE_DIR/instances/UUID/disk.config  its config drive
    STATE_DIR/instances/UUID_resize/      the same, stashed by a move
    STATE_DIR/exports/                    copies that are being sent
    STATE_DIR/incoming/UUID.json          a guest that is being live-migrated to this host (`simulated.live`)
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec

from causeway import durable
from causeway.errors import GuestFailed
from causeway.model.states import PowerState
from causeway.turns import Turns
from causeway.virt import folder_owner
from causeway.virt.shared_disks.ownership import SharedDisks
from causeway.virt.simulated.guest import Guest
from causeway.virt.undo import undone_on_failure

STASHED = "_resize"
CONSOLE = "console.log"
_GUESTS = msgspec.json.Decoder(Guest)


def has_port(state_dir: Path, port_id: str) -> bool:
    """Whether a guest of the host, or one that is arriving there, has the port."""
    for path in (*state_dir.glob("guests/*.json"), *state_dir.glob("incoming/*.json")):
        guest = guest_of(path)
        if guest is not None and any(port.id == port_id for port in guest.ports):
            return True
    return False


class HostFiles:
    """The files of one host in ``state_dir``, and its guests in memory. Whoever changes a guest or its disks holds its lock."""

    def __init__(self, hostname: str, state_dir: Path, shared: SharedDisks | None = None) -> None:
        self._hostname = hostname
        #: the disks of its guests that are in a store of several hosts; ``disks`` of such a guest has links to them
        self.shared = shared
        self.state_dir = state_dir
        self._incoming_dir = state_dir / "incoming"
        self._guests_dir = state_dir / "guests"
        self.disks_dir = state_dir / "instances"
        self.exports_dir = state_dir / "exports"
        self._guests: dict[str, Guest] = {}
        # uuids of guests that may arrive: another host puts their files here.
        self._expected: set[str] = set()
        self._lock = threading.Lock()
        self._turns = Turns()
        self._console_news = threading.Condition()
        #: called with the uuid of each guest whose definition was deleted
        self.on_undefined: Callable[[str], None] = lambda _uuid: None

    def load(self) -> None:
        """Loads the guests that are on the host's disk. Deletes exports: they end with the process that made them.

        Raises `Misconfigured` if the folder is another host's.
        """
        folder_owner.claim(self.state_dir, self._hostname)
        shutil.rmtree(self.exports_dir, ignore_errors=True)
        for directory in (self._guests_dir, self.disks_dir, self.exports_dir, self._incoming_dir):
            durable.make_folder(directory)
        durable.discard_unfinished(self._guests_dir)
        durable.discard_unfinished(self._incoming_dir)
        self._expected = {path.stem for path in self._incoming_dir.glob("*.json")}
        for path in self._guests_dir.glob("*.json"):
            try:
                guest = durable.read(path, _GUESTS.decode)
            except durable.Torn:
                # Like a hypervisor that lost a definition: the disks are there, and a hard reboot makes the guest again.
                continue
            if guest is not None:
                self._guests[guest.uuid] = guest
                if guest.going_to is not None:
                    self._settle(guest, Path(guest.going_to))

    def _settle(self, guest: Guest, there: Path) -> None:
        """For a guest that was being handed over when this host died: it continues here, unless the host ``there`` has it."""
        (there / "incoming" / f"{guest.uuid}.json").unlink(missing_ok=True)
        if guest_of(there / "guests" / f"{guest.uuid}.json") is None:
            guest.power_state, guest.going_to, guest.was = guest.was or PowerState.PAUSED, None, None
            self.save(guest)

    @property
    def guests(self) -> dict[str, Guest]:
        """The guests that the hypervisor knows, including those that other hosts have handed over by now."""
        for uuid in list(self._expected):
            # In this order: a guest that arrives in between has its file by then.
            is_coming, guest = self.incoming(uuid).exists(), guest_of(self._guests_dir / f"{uuid}.json")
            if guest is not None or not is_coming:
                with self._lock:
                    self._expected.discard(uuid)
                    if guest is not None:
                        self._guests.setdefault(uuid, guest)
        return self._guests

    def incoming(self, uuid: str) -> Path:
        return self._incoming_dir / f"{uuid}.json"

    def all_incoming(self) -> list[str]:
        """The servers whose guests may arrive."""
        return sorted(path.stem for path in self._incoming_dir.glob("*.json"))

    def expect(self, guest: Guest) -> None:
        """Lets another host hand this guest over to this one."""
        durable.write(self.incoming(guest.uuid), msgspec.json.encode(guest))
        with self._lock:
            self._expected.add(guest.uuid)

    def discard_incoming(self, uuid: str) -> None:
        if self.incoming(uuid).exists():
            durable.delete(self.incoming(uuid))

    def list_guests(self) -> dict[str, PowerState]:
        guests = self.guests
        with self._lock:
            return {uuid: guest.power_state for uuid, guest in guests.items()}

    def list_disks(self) -> dict[str, bool]:
        """uuid -> whether it has stashed disks, for every server that has disks or stashed disks here."""
        names = {path.name for path in self.disks_dir.iterdir()}
        return {name.removesuffix(STASHED): name.removesuffix(STASHED) + STASHED in names for name in names}

    @contextmanager
    def restored_on_failure(self, uuid: str, guest: Guest | None) -> Iterator[None]:
        """If making a guest fails, its disks and its definition become what they were: ``guest``, or none."""
        disks = self.disks(uuid)
        kept = {path: path.read_bytes() for path in disks.iterdir()} if disks.is_dir() else None
        durable.make_folder(disks)
        with undone_on_failure() as undo:
            undo.callback(self.undefine, uuid) if guest is None else undo.callback(self.save, guest)
            undo.callback(self.delete_disks, uuid) if kept is None else undo.callback(_put_back, disks, kept)
            yield

    def refuse_if_defined(self, uuid: str, what: str) -> None:
        """Raises `GuestFailed` while the hypervisor knows the guest. ``what`` completes "can't be ..."."""
        if uuid in self.guests:
            raise GuestFailed(
                f"The disks of {uuid} can't be {what} while the hypervisor knows the guest.", details=self._hostname
            )

    def save(self, guest: Guest) -> None:
        durable.write(self._guests_dir / f"{guest.uuid}.json", msgspec.json.encode(guest))
        self._know(guest)

    def save_before_boot(self, guest: Guest) -> None:
        """The same, unsynced: for a guest that boots next, and is saved then. If a power cut takes it, its order is repeated."""
        durable.replace(self._guests_dir / f"{guest.uuid}.json", msgspec.json.encode(guest))
        self._know(guest)

    def _know(self, guest: Guest) -> None:
        with self._lock:
            self._guests[guest.uuid] = guest

    def undefine(self, uuid: str) -> None:
        durable.delete(self._guests_dir / f"{uuid}.json")
        with self._lock:
            self._guests.pop(uuid, None)
        self.on_undefined(uuid)

    def append_to_console(self, uuid: str, text: str) -> None:
        with (self.disks(uuid) / CONSOLE).open("a") as console:
            console.write(text)
        self.wake_readers()

    def wake_readers(self) -> None:
        """Has everybody who waits for a console look again."""
        with self._console_news:
            self._console_news.notify_all()

    def wait_for_console(self, is_so: Callable[[], bool]) -> bool:
        """Waits until ``is_so`` is true; it is asked whenever a console may have changed."""
        with self._console_news:
            return self._console_news.wait_for(is_so)

    def locked(self, uuid: str) -> AbstractContextManager[None]:
        return self._turns.of(uuid)

    def disks(self, uuid: str) -> Path:
        return self.disks_dir / uuid

    def stash(self, uuid: str) -> Path:
        return self.disks_dir / f"{uuid}{STASHED}"

    def delete_disks(self, uuid: str) -> None:
        if self.shared is not None:
            self.shared.release(self.disks(uuid))
        durable.delete_tree(self.disks(uuid))

    def delete_stash(self, uuid: str) -> None:
        if self.shared is not None:
            self.shared.release_stashed(self.stash(uuid))
        durable.delete_tree(self.stash(uuid))


def guest_of(path: Path) -> Guest | None:
    """The guest in a file of any host; None: there is no such file, or it is torn."""
    try:
        return _GUESTS.decode(path.read_bytes())
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def running_in(hosts_dir: Path, uuid: str) -> list[str]:
    """The names of the hosts that run a guest, among those that keep their state in a directory of ``hosts_dir``."""
    hosts = []
    for path in hosts_dir.glob(f"*/guests/{uuid}.json"):
        guest = guest_of(path)
        # A torn file is left to its own host.
        if guest is not None and guest.power_state is PowerState.RUNNING:
            hosts.append(guest.host)
    return sorted(hosts)


def _put_back(directory: Path, kept: dict[Path, bytes]) -> None:
    """Makes the files of a directory what they were. Files that did not change are not touched."""
    for path in directory.iterdir():
        if path not in kept:
            path.unlink()
    for path, content in kept.items():
        if not path.exists() or path.read_bytes() != content:
            durable.write(path.resolve(), content)
