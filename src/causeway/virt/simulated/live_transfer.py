"""Live migration between simulated hosts: their "hypervisors" reach each other through the files of the machine that they share.

::

    STATE_DIR/incoming/UUID.json    a guest that may arrive; its memory is not here

First memory and disks are sent over the source's link, then what the guest has changed meanwhile, again and again, until the rest
takes no longer than `DOWNTIME`. Then the guest stands still. Its memory, and what its disks have beyond their images, are written
to the target's files, and ``incoming/UUID.json`` of the target is renamed to ``guests/UUID.json``: from that instant on the
target owns the guest.

Between hosts of one store (`[simulated] shared_stores`) the link carries memory only. The disks stay where they are.

A guest that changes more than its link can take is slowed down, where that is allowed (auto-converge). A guest whose memory has a
line ``busy`` changes it faster than any link: its migration lasts until it is forced or aborted. A forced guest stands still
until the rest has arrived. With post-copy it runs at the target at once, and the rest follows.
"""

from __future__ import annotations

import dataclasses
import threading
from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from causeway import durable
from causeway.errors import ClaimRefused, GuestFailed, HostUnreachable
from causeway.model.instance import Instance
from causeway.model.states import PowerState, VmState
from causeway.virt import driver as virt
from causeway.virt.image_formats import check_size, most_bytes
from causeway.virt.live_guest import LiveDisk, LiveOptions, LiveProgress, LiveSource, LiveTarget, Presence
from causeway.virt.simulated import activity, disk
from causeway.virt.simulated.base import SimulatedBase
from causeway.virt.simulated.guest import Guest, define
from causeway.virt.simulated.host_files import CONSOLE, guest_of
from causeway.virt.simulated.link import Transfer

BUSY = "busy"
# The fewest rounds of a migration, and the fewest seconds of a round.
ROUNDS, ROUND_SECONDS = 2, 0.05
# The most seconds that a guest may stand still; and into how many pieces a round is cut, with a look after each.
DOWNTIME, LOOKS = 0.3, 16
# How much of its speed a guest loses at first, with each further round, and at most; as with QEMU.
_THROTTLE_FIRST, _THROTTLE_STEP, _THROTTLE_MOST = 0.2, 0.1, 0.99

_MIB = 1024**2
_PRESENCES = {
    PowerState.RUNNING: Presence.RUNNING,
    PowerState.PAUSED: Presence.PAUSED,
    PowerState.CRASHED: Presence.CRASHED,
}
_LIVING = (PowerState.RUNNING, PowerState.PAUSED)


@dataclass
class _Job:
    """A migration under way. It is in the memory of its host, and ends with it."""

    progress: LiveProgress
    aborted: bool = False
    forced: bool = False
    post_copy: bool = False
    failure: str | None = None
    transfer: Transfer | None = None
    #: set when somebody forces or aborts it
    wake: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


def _nothing(_where: str) -> None:
    """Used where no test watches."""


class LiveDriver(SimulatedBase, ABC):
    """A part of `SimulatedDriver`."""

    supports_live_migration = True
    #: simulated hypervisors with the same network reach one another
    live_network: str = ""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._jobs_lock = threading.Lock()
        #: for tests: called with "stands still" before a guest is handed over, and with "handed over" after it
        self.at_hand_over: Callable[[str], None] = _nothing

    def presence(self, uuid: str) -> Presence:
        # In this order: a guest that arrives in between is found.
        incoming = self.files.incoming(uuid).exists()
        guest = self.files.guests.get(uuid)
        if guest is None:
            return Presence.INCOMING if incoming else Presence.ABSENT
        if guest.going_to is not None:
            return Presence.PAUSED_FOR_MIGRATION
        return _PRESENCES.get(guest.power_state, Presence.OFF)

    def live_source(self, instance: Instance) -> LiveSource:
        with self.files.locked(instance.uuid):
            is_suspended = instance.vm_state is VmState.SUSPENDED
            guest = self._saved_guest(instance.uuid) if is_suspended else self._leaving_guest(instance.uuid)
            facts = self.host_facts()
            disks, shared = [], self.shared_disks(instance.uuid)
            for path in guest.local_files().values():
                header = disk.load(path).header
                disks.append(LiveDisk(path.name, header.size, header.base_image_id, shared.get(path.name)))
        return LiveSource(
            facts.hypervisor_type,
            facts.hypervisor_version,
            disks,
            disk_bytes=self.disk_bytes(instance.uuid) or 0,
        )

    def check_live_target(self, source: LiveSource) -> None:
        facts = self.host_facts()
        if source.hypervisor_type != facts.hypervisor_type:
            raise ClaimRefused("The chosen host has another hypervisor than the server's host.", details=self.hostname)
        if source.hypervisor_version > facts.hypervisor_version:
            raise ClaimRefused("The chosen host has an older hypervisor than the server's host.", details=self.hostname)

    def live_address(self) -> LiveTarget:
        return LiveTarget(self.hostname, {"network": self.live_network})

    def try_live_address(self, target: LiveTarget) -> None:
        there = target.details.get("network")
        if there != self.live_network:
            raise HostUnreachable(
                "The hypervisor of the chosen host can't be reached by that of the server's host.",
                details=f"{self.hostname} is in network '{self.live_network}', {target.address} in '{there}'",
            )

    def prepare_live_target(self, spec: virt.GuestSpec, source: LiveSource) -> LiveTarget:
        uuid, files = spec.instance.uuid, self.files
        is_shared = bool(source.shared) and self.reaches_disks(source.shared)
        there = LiveTarget(self.hostname, {"state_dir": str(files.state_dir), "shared_storage": is_shared})
        with files.locked(uuid):
            if self.presence(uuid).is_alive:
                return there
            files.discard_incoming(uuid)
            files.undefine(uuid)
            folder = files.disks(uuid)
            files.delete_disks(uuid)
            durable.make_folder(folder)
            for name, shared in source.shared.items() if is_shared else ():
                self._disk_maker.await_guest(folder / name, shared)
            root = next((each for each in source.disks if each.name == virt.ROOT_DISK), None)
            if spec.root_disk is not None and root is not None and not is_shared:
                check_size(f"The root disk of server {uuid}", root.size, most_bytes(spec.root_disk.size_gb, folder))
                size_gb = root.size // (1024 * _MIB)
                self._disk_maker.empty_root(
                    folder / virt.ROOT_DISK, dataclasses.replace(spec.root_disk, size_gb=size_gb)
                )
            for local in spec.local_disks if not is_shared else ():
                self._disk_maker.local(folder / local.name, local)
            if spec.config_drive:
                durable.write(folder / "disk.config", msgspec.json.encode(spec.config_drive))
            self._require_keys(spec.volumes, spec.instance)
            files.expect(define(spec, self.hostname, folder, PowerState.PAUSED, self.habits))
        return there

    def live_migrate(
        self,
        spec: virt.GuestSpec,
        target: LiveTarget,
        options: LiveOptions,
        progress: Callable[[LiveProgress], None],
    ) -> None:
        uuid = spec.instance.uuid
        with self._jobs_lock:
            found = self._jobs.get(uuid)
            job = self._jobs.setdefault(uuid, _Job(LiveProgress()))
        if found is not None:
            found.ended.wait()
            if found.failure is not None:
                raise GuestFailed(found.failure, details=self.hostname)
            return
        try:
            self._transfer(uuid, target, job, options, progress)
        except BaseException as failure:
            job.failure = str(failure) or type(failure).__name__
            raise
        finally:
            with self._jobs_lock:
                self._jobs.pop(uuid, None)
            job.ended.set()

    def live_progress(self, uuid: str) -> LiveProgress | None:
        job = self._jobs.get(uuid)
        return None if job is None else dataclasses.replace(job.progress)

    def live_arrival(self, uuid: str) -> LiveProgress | None:
        guest = self.files.guests.get(uuid)
        return None if guest is None else guest.came

    def abort_live_migration(self, uuid: str) -> None:
        job = self._jobs.get(uuid)
        if job is not None:
            job.aborted = True
            job.wake.set()
            job.ended.wait()

    def limit_live_migration(self, uuid: str, bandwidth: float) -> None:
        job = self._jobs.get(uuid)
        if job is not None and job.transfer is not None:
            job.transfer.limit = bandwidth

    def force_live_migration(self, uuid: str, *, post_copy: bool) -> None:
        job = self._jobs.get(uuid)
        if job is None:
            raise GuestFailed(f"Guest {uuid} is not being migrated.", details=self.hostname)
        job.post_copy, job.forced = post_copy, True
        job.wake.set()

    # inside

    def _leaving_guest(self, uuid: str) -> Guest:
        """Raises `GuestFailed` if the guest neither runs nor is paused."""
        guest = self.files.guests.get(uuid)
        if guest is None or guest.going_to is not None or guest.power_state not in _LIVING:
            raise GuestFailed(
                f"Guest {uuid} neither runs nor is paused: it can't be live-migrated.", details=self.hostname
            )
        return guest

    def _saved_guest(self, uuid: str) -> Guest:
        """Raises `GuestFailed` if the memory of the suspended guest is not here."""
        guest = self.files.guests.get(uuid)
        has_memory = guest is not None and guest.power_state is PowerState.SUSPENDED
        if guest is None or not (has_memory or self.saved_memory(uuid)):
            raise GuestFailed(f"Guest {uuid} is suspended, and its memory is not here.", details=self.hostname)
        return guest

    def _transfer(
        self, uuid: str, target: LiveTarget, job: _Job, options: LiveOptions, progress: Callable[[LiveProgress], None]
    ) -> None:
        there = Path(target.details["state_dir"])
        guest = self._leaving_guest(uuid)
        guest.refuse_devices_of_host()
        sends_disks = not target.details.get("shared_storage")
        sent = guest.local_files() if sends_disks else {}
        with self.link.transfer(options.bandwidth * _MIB) as transfer:
            job.transfer = transfer
            sending = _Sending(self, uuid, job, transfer, progress)
            memory = sending.seen.memory_total = guest.memory_mb * _MIB
            disks = sending.seen.disk_total = sum(_bytes_of(path) for path in sent.values())
            share = 1.0
            for count in range(1, 2**31):
                began = self.link.clock.time()
                left = sending.send(memory, disks)
                guest, changed = self._changed(uuid, self.link.clock.time() - began, share)
                memory = min(left[0] + changed[0], sending.seen.memory_total)
                disks = min(left[1] + changed[1], sending.seen.disk_total)
                sending.show_remaining(memory, disks)
                is_little = BUSY not in guest.memory and transfer.seconds(memory + disks) <= DOWNTIME
                if job.forced or (count >= ROUNDS and is_little):
                    break
                if options.auto_converge and not is_little:
                    throttle = _THROTTLE_FIRST if share == 1.0 else 1.0 - share + _THROTTLE_STEP
                    share = 1.0 - min(throttle, _THROTTLE_MOST)
                self.link.clock.wait(job.wake, ROUND_SECONDS)
            job.progress.post_copy = job.post_copy
            if job.post_copy:
                self._hand_over(uuid, there, transfer, 0, disks, job.progress, sends_disks=sends_disks)
                progress(dataclasses.replace(job.progress))
                sending.send(memory, 0, is_through=True)
            else:
                self._hand_over(uuid, there, transfer, memory, disks, job.progress, sends_disks=sends_disks)
        job.progress.memory_remaining = job.progress.disk_remaining = 0

    def _changed(self, uuid: str, seconds: float, share: float) -> tuple[Guest, tuple[int, int]]:
        """The guest, and the bytes of (memory, disks) that it has changed in so many seconds at ``share`` of its speed."""
        with self.files.locked(uuid):
            guest = self._leaving_guest(uuid)
            before = activity.writes(guest)
            if activity.catch_up(guest, self.link.clock.time(), share):
                self.files.save(guest)
            written = (activity.writes(guest) - before) * disk.WRITE
            if BUSY in guest.memory:
                return guest, (guest.memory_mb * _MIB // 2, written)
            runs = guest.power_state is PowerState.RUNNING
            return guest, (int(seconds * guest.memory_rate * share) if runs else 0, written)

    def _hand_over(
        self,
        uuid: str,
        there: Path,
        transfer: Transfer,
        memory: int,
        disks: int,
        sent: LiveProgress,
        *,
        sends_disks: bool,
    ) -> None:
        """Hands the guest over to the host with the state directory ``there``. Raises `GuestFailed`; then it continues here.

        ``memory``, ``disks``: bytes that are sent while the guest stands still. ``sent``: what was sent before.
        """
        files, clock = self.files, self.link.clock
        with files.locked(uuid):
            before = self._leaving_guest(uuid)
            before.refuse_devices_of_host()
            activity.catch_up(before, clock.time())
            stands_since = clock.time()
            files.save(
                dataclasses.replace(before, power_state=PowerState.PAUSED, going_to=str(there), was=before.power_state)
            )
            try:
                expected = guest_of(there / "incoming" / f"{uuid}.json")
                if expected is None:
                    raise GuestFailed(f"The target does not expect guest {uuid}.", details=str(there))
                expected.refuse_devices_of_host()
                if transfer.take(memory + disks, self.link.stopping):
                    raise GuestFailed("The host was stopped while the guest stood still.", details=self.hostname)
                if sends_disks:
                    _copy_disks(before, expected)
                _copy_consoles(before, expected)
                _copy_firmware(before, self.files.disks(uuid), there / "instances" / uuid)
                expected.memory, expected.power_state = list(before.memory), before.power_state
                expected.came = dataclasses.replace(
                    sent,
                    # With post-copy the rest arrives too, a little later.
                    memory_processed=sent.memory_processed + sent.memory_remaining,
                    disk_processed=sent.disk_processed + disks,
                    memory_remaining=0,
                    disk_remaining=0,
                    post_copy=False,
                )
                if before.power_state is PowerState.RUNNING:
                    expected.caught_up, expected.stood_still = clock.time(), clock.time() - stands_since
                durable.write(there / "incoming" / f"{uuid}.json", msgspec.json.encode(expected))
                self.at_hand_over("stands still")
                durable.rename(there / "incoming" / f"{uuid}.json", there / "guests" / f"{uuid}.json")
            except Exception as failure:
                # The target has discarded what had arrived, or never had it: the guest continues here.
                before.caught_up = clock.time() if before.power_state is PowerState.RUNNING else None
                files.save(before)
                raise GuestFailed("The guest could not be handed over.", details=f"{there}: {failure}") from failure
            self.at_hand_over("handed over")
            files.undefine(uuid)


class _Sending:
    """Sends memory and disks to the target while the guest runs."""

    def __init__(
        self,
        driver: LiveDriver,
        uuid: str,
        job: _Job,
        transfer: Transfer,
        progress: Callable[[LiveProgress], None],
    ) -> None:
        self._driver, self._uuid, self._job = driver, uuid, job
        self._transfer, self._progress = transfer, progress
        self.seen = job.progress

    def send(self, memory: int, disks: int, *, is_through: bool = False) -> tuple[int, int]:
        """Sends so many bytes, in pieces, so that it can be aborted. Returns the bytes that were not sent because it was forced.

        ``is_through``: the guest runs at its target already, so nothing can end this.
        """
        seen = self.seen
        pieces = LOOKS if self._transfer.seconds(memory + disks) else 1
        for turn in range(1, pieces + 1):
            if self._job.forced and not is_through:
                return memory * (pieces - turn + 1) // pieces, disks * (pieces - turn + 1) // pieces
            self._transfer.take((memory + disks) / pieces, None if is_through else self._job.wake)
            # Forced in the middle of a piece: the link still needs the time of the whole piece.
            seen.memory_processed += memory // pieces
            seen.disk_processed += disks // pieces
            seen.memory_remaining = memory * (pieces - turn) // pieces
            seen.disk_remaining = disks * (pieces - turn) // pieces
            if turn < pieces and not is_through:
                self._look()
        return 0, 0

    def show_remaining(self, memory: int, disks: int) -> None:
        """Shows what is left for the next round."""
        self.seen.memory_remaining, self.seen.disk_remaining = memory, disks
        self._look()

    def _look(self) -> None:
        self._driver._leaving_guest(self._uuid)
        self._progress(dataclasses.replace(self.seen))
        if self._job.aborted:
            raise GuestFailed("The live migration was aborted.", details=self._driver.hostname)


def _bytes_of(path: Path) -> int:
    """Bytes of a disk, as they are counted when it is sent."""
    return path.stat().st_size + disk.load(path).data


def _copy_firmware(guest: Guest, here: Path, there: Path) -> None:
    for name in guest.firmware:
        if (here / name).exists():
            durable.write(there / name, (here / name).read_bytes())


def _copy_disks(guest: Guest, expected: Guest) -> None:
    files = expected.local_files()
    for device, path in guest.local_files().items():
        source, target = disk.load(path), disk.load(files[device])
        same_base = source.header.base_image_id == target.header.base_image_id
        target.lines = source.lines if same_base else source.all_lines
        target.header.written = source.header.written
        disk.save(files[device], target)


def _copy_consoles(guest: Guest, expected: Guest) -> None:
    files, console = expected.local_files(), CONSOLE
    for folder in {path.parent for path in guest.local_files().values()}:
        if (folder / console).exists():
            for other in {path.parent for path in files.values()}:
                durable.write(other / console, (folder / console).read_bytes())
