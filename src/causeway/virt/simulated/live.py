"""Live migration between simulated hosts: their "hypervisors" reach each other through the files of the machine that they share.

::

    STATE_DIR/incoming/UUID.json    a guest that the host makes room for; its memory is not here

The source's guest stands still, its memory and what its disks have beyond their images go into the target's files, and then the
target's ``incoming/UUID.json`` becomes its ``guests/UUID.json``. That rename is the instant in which the guest changes hands.
A guest whose memory has a line ``busy`` changes it faster than it can be copied: its migration goes on until it is forced, or
aborted.
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
from causeway.model.states import PowerState
from causeway.virt import driver as virt
from causeway.virt.live import LiveDisk, LiveOptions, LiveProgress, LiveSource, LiveTarget, Presence
from causeway.virt.simulated import disk
from causeway.virt.simulated.guest import Guest, define
from causeway.virt.simulated.host_files import HostFiles, guest_of

BUSY = "busy"
# Rounds in which the memory of a quiet guest is through, and seconds that one takes.
ROUNDS, ROUND_SECONDS = 2, 0.05

_MIB = 1024**2
_PRESENCES = {
    PowerState.RUNNING: Presence.RUNNING,
    PowerState.PAUSED: Presence.PAUSED,
    PowerState.CRASHED: Presence.CRASHED,
}
_LIVING = (PowerState.RUNNING, PowerState.PAUSED)


@dataclass
class _Job:
    """A migration under way: in the memory of its host, with which it ends."""

    progress: LiveProgress
    aborted: bool = False
    forced: bool = False
    failure: str | None = None
    #: somebody wants something of it
    wake: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


def _nothing(_where: str) -> None:
    """No test looks."""


class LiveDriver(virt.Driver, ABC):
    """The part of `SimulatedDriver` that migrates guests while they run."""

    supports_live_migration = True
    hostname: str
    files: HostFiles
    #: simulated hypervisors of the same network reach one another
    live_network: str = ""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._jobs_lock = threading.Lock()
        #: for tests: called in the middle of a hand-over with where it is ("stands still", "handed over")
        self.at_hand_over: Callable[[str], None] = _nothing

    def presence(self, uuid: str) -> Presence:
        # In this order: what comes in between is found as a guest.
        incoming = self.files.incoming(uuid).exists()
        guest = self.files.guests.get(uuid)
        if guest is None:
            return Presence.INCOMING if incoming else Presence.ABSENT
        if guest.going_to is not None:
            return Presence.PAUSED_FOR_MIGRATION
        return _PRESENCES.get(guest.power_state, Presence.OFF)

    def live_source(self, instance: Instance) -> LiveSource:
        with self.files.locked(instance.uuid):
            guest = self._leaving_guest(instance.uuid)
            facts = self.host_facts()
            disks = []
            for path in guest.local_files().values():
                header = disk.load(path).header
                size = header.size_mb * _MIB or header.size_gb * 1024 * _MIB
                disks.append(LiveDisk(path.name, size, header.base_image_id))
        taken = virt.allocated_bytes(self.files.disks(instance.uuid))
        return LiveSource(facts.hypervisor_type, facts.hypervisor_version, disks, disk_bytes=taken)

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
        there = LiveTarget(self.hostname, {"state_dir": str(files.state_dir)})
        with files.locked(uuid):
            if self.presence(uuid).is_alive:
                return there
            files.forget_incoming(uuid)
            files.undefine(uuid)
            folder = files.disks(uuid)
            durable.delete_tree(folder)
            durable.make_folder(folder)
            root = next((each for each in source.disks if each.name == virt.ROOT_DISK), None)
            if spec.root_disk is not None and root is not None:
                size_gb = root.size // (1024 * _MIB)
                disk.create_empty(folder / virt.ROOT_DISK, dataclasses.replace(spec.root_disk, size_gb=size_gb))
            for local in spec.local_disks:
                disk.create_local(folder / local.name, local)
            if spec.config_drive:
                durable.write(folder / "disk.config", msgspec.json.encode(spec.config_drive))
            files.expect(define(spec, self.hostname, folder, PowerState.PAUSED))
        return there

    def live_migrate(
        self,
        spec: virt.GuestSpec,
        target: LiveTarget,
        options: LiveOptions,  # noqa: ARG002 - there is nothing to tune
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
            self._transfer(uuid, Path(target.details["state_dir"]), job, progress)
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

    def abort_live_migration(self, uuid: str) -> None:
        job = self._jobs.get(uuid)
        if job is not None:
            job.aborted = True
            job.wake.set()
            job.ended.wait()

    def force_live_migration(self, uuid: str, *, post_copy: bool) -> None:  # noqa: ARG002 (it stands still, for a moment)
        job = self._jobs.get(uuid)
        if job is None:
            raise GuestFailed(f"Guest {uuid} is not being migrated.", details=self.hostname)
        job.forced = True
        job.wake.set()

    # inside

    def _leaving_guest(self, uuid: str) -> Guest:
        guest = self.files.guests.get(uuid)
        if guest is None or guest.going_to is not None or guest.power_state not in _LIVING:
            raise GuestFailed(
                f"Guest {uuid} neither runs nor is paused: it can't be live-migrated.", details=self.hostname
            )
        return guest

    def _transfer(self, uuid: str, there: Path, job: _Job, progress: Callable[[LiveProgress], None]) -> None:
        guest = self._leaving_guest(uuid)
        seen = job.progress
        seen.memory_total = guest.memory_mb * _MIB
        seen.disk_total = seen.disk_remaining = sum(path.stat().st_size for path in guest.local_files().values())
        for count in range(1, 2**31):
            seen.memory_processed += seen.memory_total // ROUNDS
            # What is busy has changed again what was copied.
            quiet = max(ROUNDS - count, 0) * seen.memory_total // ROUNDS
            seen.memory_remaining = seen.memory_total // 2 if BUSY in guest.memory else quiet
            seen.disk_processed, seen.disk_remaining = seen.disk_total, 0
            progress(dataclasses.replace(seen))
            if job.aborted:
                raise GuestFailed("The live migration was aborted.", details=self.hostname)
            if job.forced or (count >= ROUNDS and BUSY not in guest.memory):
                break
            job.wake.wait(ROUND_SECONDS)
            guest = self._leaving_guest(uuid)
        self._hand_over(uuid, there)
        seen.memory_remaining = 0

    def _hand_over(self, uuid: str, there: Path) -> None:
        files = self.files
        with files.locked(uuid):
            before = self._leaving_guest(uuid)
            files.save(
                dataclasses.replace(before, power_state=PowerState.PAUSED, going_to=str(there), was=before.power_state)
            )
            try:
                expected = guest_of(there / "incoming" / f"{uuid}.json")
                if expected is None:
                    raise GuestFailed(f"The target does not expect guest {uuid}.", details=str(there))
                _copy_disks(before, expected)
                expected.memory, expected.power_state = list(before.memory), before.power_state
                durable.write(there / "incoming" / f"{uuid}.json", msgspec.json.encode(expected))
                self.at_hand_over("stands still")
                durable.rename(there / "incoming" / f"{uuid}.json", there / "guests" / f"{uuid}.json")
            except Exception as failure:
                # The target has thrown away what had come, or never had it: the guest goes on here.
                files.save(before)
                raise GuestFailed("The guest could not be handed over.", details=f"{there}: {failure}") from failure
            self.at_hand_over("handed over")
            files.undefine(uuid)


def _copy_disks(guest: Guest, expected: Guest) -> None:
    files, console = expected.local_files(), "console.log"
    for device, path in guest.local_files().items():
        source, target = disk.load(path), disk.load(files[device])
        same_base = source.header.base_image_id == target.header.base_image_id
        target.lines = source.lines if same_base else source.all_lines
        durable.write(files[device], target.encode())
    for folder in {path.parent for path in guest.local_files().values()}:
        if (folder / console).exists():
            for other in {path.parent for path in files.values()}:
                durable.write(other / console, (folder / console).read_bytes())
