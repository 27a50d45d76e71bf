"""The part of the libvirt driver that moves guests: live, by saved memory, or by warm copies of their disks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

from causeway.errors import GuestFailed, WarmCopyImpossible
from causeway.model.instance import Instance
from causeway.model.states import PowerState
from causeway.virt.driver import DiskCopy, Driver, GuestSpec, nothing_to_wait_for
from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.guest_xml.domain_xml import GuestDisk, GuestHardware, domain_xml
from causeway.virt.libvirt.live import live_readiness, live_source, live_target
from causeway.virt.libvirt.live.migration import LiveMigrations
from causeway.virt.libvirt.network import Ports
from causeway.virt.libvirt.storage import rounds, saved_memory, temporary_files, write_limits
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.libvirt.storage.kept_files import KeptFiles
from causeway.virt.libvirt.storage.snapshot_rounds import SnapshotRounds
from causeway.virt.libvirt.storage.volumes import Volumes
from causeway.virt.live_guest import LiveOptions, LiveProgress, LiveSource, LiveTarget, Presence
from causeway.virt.undo import undone_on_failure
from causeway.virt.warm import DiskReader, DiskWriter, Round


class MovingGuests(Driver, ABC):
    """A part of `LibvirtDriver`, which sets the attributes."""

    supports_warm_copy = True
    supports_live_migration = True
    supports_live_port_devices = True

    _connection: Connection
    _disks: InstanceDisks
    _instances_dir: Path
    _kept: KeptFiles
    _live: LiveMigrations
    _ports: Ports
    _rounds: rounds.Rounds
    _snapshots: SnapshotRounds | None
    _virt_type: str
    _volumes: Volumes

    @abstractmethod
    def _hardware(self, spec: GuestSpec, volumes: list[GuestDisk]) -> GuestHardware: ...

    @abstractmethod
    def _take_kept(self, spec: GuestSpec) -> None: ...

    @abstractmethod
    def _make_root(self, spec: GuestSpec, undo: ExitStack) -> None: ...

    @abstractmethod
    def _make_ready(self, spec: GuestSpec, undo: ExitStack) -> str: ...

    @abstractmethod
    def _delete_disks(self, uuid: str) -> None: ...

    @abstractmethod
    def _plug(self, spec: GuestSpec, undo: ExitStack) -> None: ...

    @abstractmethod
    def _plug_ports(self, spec: GuestSpec, undo: ExitStack) -> None: ...

    # live migration

    def presence(self, uuid: str) -> Presence:
        return self._live.presence(uuid)

    def live_migration_lacks(self) -> list[str]:
        return live_readiness.lacks(self._live.settings) if self._live.settings.reachable_here else []

    def live_migration_certificates(self) -> list[Path]:
        # Hypervisors of the lab have their files elsewhere.
        return live_readiness.certificates(self._live.settings) if self._live.settings.reachable_here else []

    def live_source(self, instance: Instance) -> LiveSource:
        return live_source.describe(self._connection, self._disks, instance)

    def check_live_target(self, source: LiveSource) -> None:
        self._check_target(source)
        live_source.check_name(self._connection, source)
        if self._disks.copies_itself:
            live_source.check_copies(source, self.reaches_disks)
        if self._live.settings.reachable_here:
            live_source.check_reachable(self._live.settings.control_uri())

    def _check_target(self, source: LiveSource) -> None:
        room = self.disk_room(over_commit=True)
        live_source.check_target(self._connection, source, virt_type=self._virt_type, room=room)

    def live_address(self) -> LiveTarget:
        settings = self._live.settings
        return LiveTarget(settings.address, {"uri": settings.control_uri(), "port": live_readiness.first_port()})

    def try_live_address(self, target: LiveTarget) -> None:
        live_source.check_reaches(self._live.settings, target)

    def disk_room(self, *, over_commit: bool) -> int:
        return self._disks.room(over_commit=over_commit)

    def prepare_live_target(self, spec: GuestSpec, source: LiveSource) -> LiveTarget:
        uuid = spec.instance.uuid
        shown = self.presence(uuid)
        is_shared = bool(source.shared) and self.reaches_disks(source.shared)
        with undone_on_failure() as undo:
            if shown is Presence.ABSENT and not self._disks.folder(uuid).exists():
                undo.callback(self._delete_disks, uuid)
            live_target.make_disks(self._disks, spec, source, shown, is_shared=is_shared)
            if shown is Presence.ABSENT:
                self._disks.write_config_drive(uuid, spec.config_drive)
            volumes = []
            for volume in spec.volumes:
                volumes.append(self._volumes.connect(uuid, volume))
                undo.callback(self._volumes.disconnect, uuid, volume)
            self._plug_ports(spec, undo)
            xml = domain_xml(self._hardware(spec, volumes))
        details = {
            "uri": self._live.settings.control_uri(),
            "xml": xml,
            "shared_disks": is_shared,
            "blank_disks": self._disks.copies_itself,
        }
        return LiveTarget(self._live.settings.address, details)

    def live_migrate(
        self, spec: GuestSpec, target: LiveTarget, options: LiveOptions, progress: Callable[[LiveProgress], None]
    ) -> None:
        must_be_whole = partial(live_source.must_be_whole, self._disks, spec.instance)
        self._live.migrate(spec.instance.uuid, target, options, progress, must_be_whole)

    def live_progress(self, uuid: str) -> LiveProgress | None:
        return self._live.progress(uuid)

    def live_arrival(self, uuid: str) -> LiveProgress | None:
        return self._live.arrival(uuid)

    def abort_live_migration(self, uuid: str) -> None:
        self._live.abort(uuid)

    def limit_live_migration(self, uuid: str, bandwidth: float) -> None:
        self._live.limit(uuid, bandwidth)

    def force_live_migration(self, uuid: str, *, post_copy: bool) -> None:
        self._live.force(uuid, post_copy=post_copy)

    # memory that outlives a move through a file

    supports_saved_memory = True
    supports_suspended_moves = True

    def check_can_wake(self, source: LiveSource) -> None:
        self._check_target(source)

    def save_memory(self, uuid: str) -> None:
        saved_memory.save(self._connection, self._disks, uuid)

    def saved_memory(self, uuid: str, *, stashed: bool = False) -> Path | None:
        return saved_memory.find(self._disks, uuid, stashed=stashed)

    def wake(self, spec: GuestSpec, *, vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None) -> None:
        uuid = spec.instance.uuid
        if saved_memory.is_awake(self._connection, self._disks, uuid):
            return
        state, has_memory = power.state(self._connection, uuid), self.saved_memory(uuid) is not None
        if not has_memory:
            power.check_not_in_transit(self._connection, uuid)
        if state is PowerState.RUNNING or (state is PowerState.PAUSED and not has_memory):
            # Its memory is nowhere else.
            raise GuestFailed(f"The guest of server {uuid} lives here already.")
        # An interrupted attempt may have made the guest, which did not run: its memory is in the file.
        power.destroy_and_undefine(self._connection, uuid)
        with undone_on_failure() as undo:
            xml = self._make_whole(spec, undo)
            with (vifs_plugged or nothing_to_wait_for)():
                self._plug(spec, undo)
                saved_memory.wake(self._connection, self._disks, uuid, xml)

    def _make_whole(self, spec: GuestSpec, undo: ExitStack) -> str:
        """Puts the guest's disks and memory in their places. Returns the XML of its definition."""
        self._make_root(spec, undo)
        xml = self._make_ready(spec, undo)
        # The memory last: where it is, everything else is too.
        if spec.memory is not None:
            saved_memory.take(self._disks, spec.instance.uuid, spec.memory, xml)
        return xml

    def resume_woken(self, uuid: str, *, is_paused: bool) -> None:
        saved_memory.resume_woken(self._connection, self._disks, uuid, is_paused=is_paused)
        if not is_paused:
            self.set_clock(uuid)

    def define_suspended(self, spec: GuestSpec) -> None:
        uuid = spec.instance.uuid
        if spec.memory is None and self.saved_memory(uuid) is None:
            raise GuestFailed(f"The memory of the guest of server {uuid} is not here.")
        if power.state(self._connection, uuid) in (PowerState.RUNNING, PowerState.PAUSED):
            raise GuestFailed(f"The guest of server {uuid} lives here already.")
        power.destroy_and_undefine(self._connection, uuid)
        with undone_on_failure() as undo:
            xml = self._make_whole(spec, undo)
            power.define(self._connection, uuid, xml)

    # copying disks while their guest runs

    def begin_round(
        self, instance: Instance, names: list[str], number: int, *, since: int | None, flatten: bool
    ) -> Round:
        in_pool = self._disks.in_storage(instance.uuid) & set(names) if self._snapshots is not None else set()
        if in_pool and in_pool != set(names):
            raise WarmCopyImpossible(f"Some disks of server {instance.uuid} are in Ceph, and some are files.")
        if in_pool and self._snapshots is not None:
            return self._snapshots.begin(instance, names, number, since=since)
        return self._rounds.begin(instance, names, number, since=since, flatten=flatten)

    def has_round(self, instance: Instance, number: int) -> bool:
        return self._rounds_of(instance.uuid).has(instance.uuid, number)

    def open_round(self, instance: Instance, name: str, number: int) -> AbstractContextManager[DiskReader]:
        return self._rounds_of(instance.uuid).open(instance.uuid, name, number)

    def end_round(self, instance: Instance, number: int) -> None:  # noqa: ARG002 - there is one at a time
        self._rounds_of(instance.uuid).end(instance.uuid)

    def open_changes(self, instance: Instance, name: str, since: int) -> AbstractContextManager[DiskReader | None]:
        return self._rounds_of(instance.uuid).open_changes(instance.uuid, name, since)

    def limit_writes(self, instance: Instance, bytes_per_second: int | None) -> None:
        write_limits.limit(self._connection, self._disks, instance.uuid, bytes_per_second)

    def end_rounds(self, uuid: str) -> None:
        self._rounds.discard(uuid)
        if self._snapshots is not None:
            self._snapshots.discard(uuid)

    def _rounds_of(self, uuid: str) -> rounds.Rounds | SnapshotRounds:
        return self._snapshots if self._snapshots is not None and self._snapshots.knows(uuid) else self._rounds

    def list_temporary_files(self) -> dict[str, list[str]]:
        return temporary_files.listed(self._disks)

    def discard_temporary_files(self, kind: str, uuid: str) -> None:
        temporary_files.discard(self._disks, self._rounds, kind, uuid)
        if kind == "rounds" and self._snapshots is not None:
            self._snapshots.discard(uuid)

    def open_copy(self, copy: DiskCopy) -> AbstractContextManager[DiskWriter]:
        return self._disks.open_copy(copy)

    def has_copy(self, path: Path) -> bool:
        return self._disks.has_copy(path)

    def discard_copy(self, path: Path) -> None:
        self._disks.discard_copy(path)

    def adopt_disks(self, spec: GuestSpec) -> None:
        uuid = spec.instance.uuid
        self._disks.make_folder(uuid)
        if spec.root_disk is not None:
            self._disks.create_root(uuid, spec.root_disk)
        for local in spec.local_disks:
            self._disks.make_local(uuid, local)
        self._take_kept(spec)
