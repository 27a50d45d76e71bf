"""Disks of simulated guests whose servers move: sent, stashed, restored, and copied while the guest runs."""

from __future__ import annotations

import uuid as uuids
from abc import ABC
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from causeway import durable
from causeway.errors import GuestFailed, WarmCopyImpossible
from causeway.model.instance import Instance
from causeway.model.shared_disk import SharedDisk, StoredDisk
from causeway.model.states import PowerState
from causeway.virt import driver as virt
from causeway.virt.simulated import agent, disk, firmware, rounds
from causeway.virt.simulated.base import SimulatedBase
from causeway.virt.simulated.host_files import CONSOLE
from causeway.virt.simulated.shared_store import RoundSnapshots
from causeway.virt.warm import DiskReader, DiskWriter, Round


class MovedDisksDriver(SimulatedBase, ABC):
    """A part of `SimulatedDriver`."""

    _rounds: rounds.Rounds

    def export_disk(self, instance: Instance, name: str, *, flatten: bool) -> AbstractContextManager[virt.DiskExport]:
        return self._export(instance, name, flatten=flatten, of_running=False)

    def export_running_disk(self, instance: Instance, name: str) -> AbstractContextManager[virt.DiskExport]:
        return self._export(instance, name, flatten=True, of_running=True)

    @contextmanager
    def _export(self, instance: Instance, name: str, *, flatten: bool, of_running: bool) -> Iterator[virt.DiskExport]:
        uuid = instance.uuid
        target = self.files.exports_dir / f"{uuid}-{uuids.uuid4()}"
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if of_running != (guest is not None and guest.power_state is PowerState.RUNNING):
                is_wrong = "does not run" if of_running else "runs"
                raise GuestFailed(f"Guest {uuid} {is_wrong}: its disk can't be exported.", details=self.hostname)
            if guest is not None:
                self._catch_up(guest)
            with agent.still(self.files, guest, instance) if guest is not None and of_running else nullcontext():
                copy = disk.export(self.files.disks(uuid) / name, target, flatten=flatten)
        base_image_id = copy.header.base_image_id
        size = target.stat().st_size
        try:
            with self.link.transfer() as transfer:
                if transfer.take(size + copy.data):
                    raise GuestFailed("The host was stopped while a disk of its guests was read.")
            yield virt.DiskExport(
                name=name,
                path=target,
                disk_format="qcow2",
                size=size,
                base_image_id=base_image_id,
                scale=1.0 + copy.data / size,
            )
        finally:
            target.unlink(missing_ok=True)

    @contextmanager
    def export_kept_state(self, instance: Instance) -> Iterator[virt.DiskExport]:
        uuid = instance.uuid
        target = self.files.exports_dir / f"{uuid}-{uuids.uuid4()}"
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is not None and guest.power_state is PowerState.RUNNING:
                raise GuestFailed(
                    f"Guest {uuid} runs: the state of its firmware can't be exported.", details=self.hostname
                )
            durable.make_folder(self.files.disks(uuid))
            target.write_bytes(firmware.pack(self.files.disks(uuid)))
        try:
            yield virt.DiskExport(virt.KEPT_STATE, target, "raw", target.stat().st_size)
        finally:
            target.unlink(missing_ok=True)

    def stash_disks(self, uuid: str) -> None:
        with self.files.locked(uuid):
            self.files.refuse_if_defined(uuid, "stashed")
            if not self.files.stash(uuid).is_dir() and self.files.disks(uuid).is_dir():
                if self.files.shared is not None:
                    self.files.shared.put_aside(self.files.disks(uuid))
                durable.sync_tree(self.files.disks(uuid), but=(CONSOLE,))
                durable.rename(self.files.disks(uuid), self.files.stash(uuid))
            else:
                # Already stashed, perhaps by a process that was killed before it synced the directory.
                durable.sync(self.files.disks_dir)

    def restore_stashed_disks(self, uuid: str) -> None:
        with self.files.locked(uuid):
            if not self.files.stash(uuid).is_dir():
                durable.sync(self.files.disks_dir)
                return
            self.files.refuse_if_defined(uuid, "restored")
            if self.files.disks(uuid).is_dir():
                raise GuestFailed(
                    f"Server {uuid} has disks and stashed disks: which of them to keep is not for this host to guess.",
                    details=self.hostname,
                )
            if self.files.shared is not None:
                self.files.shared.put_back(self.files.stash(uuid))
            durable.rename(self.files.stash(uuid), self.files.disks(uuid))

    def delete_stashed_disks(self, uuid: str) -> None:
        with self.files.locked(uuid):
            self.files.delete_stash(uuid)

    def delete_disks(self, uuid: str) -> None:
        with self.files.locked(uuid):
            self.files.refuse_if_defined(uuid, "deleted")
            self.files.delete_disks(uuid)

    # in shared storage

    def storage(self) -> str | None:
        return self.files.shared.store.id if self.files.shared is not None else None

    def stored_image(self, location: str) -> virt.StoredImage | None:
        return self._disk_maker.stored_image(location)

    def stores_images(self) -> bool:
        return self.files.shared is not None

    def store_image(self, instance: Instance, name: str, image_id: str, beside: str) -> virt.StoredImage | None:
        kept = self._disk_maker.beside(beside, image_id)
        if kept is None:
            return None
        guest = self.files.guests.get(instance.uuid)
        of_running = guest is not None and guest.power_state is PowerState.RUNNING
        with self._export(instance, name, flatten=True, of_running=of_running) as exported:
            made = disk.load(exported.path)
        if made.header.written is not None:
            return None
        disk.save(kept, made)
        return virt.StoredImage(kept.as_uri(), kept.stat().st_size)

    def delete_stored_image(self, image_id: str, beside: str) -> None:
        kept = self._disk_maker.beside(beside, image_id)
        if kept is not None:
            durable.delete(kept)

    def shared_disks(self, uuid: str) -> dict[str, SharedDisk]:
        return self.files.shared.offered(self.files.disks(uuid)) if self.files.shared is not None else {}

    def reaches_disks(self, offered: dict[str, SharedDisk]) -> bool:
        shared = self.files.shared
        return shared is not None and shared.reaches(*offered.values())

    def list_storage(self) -> list[StoredDisk]:
        return self.files.shared.listed() if self.files.shared is not None else []

    def remove_from_storage(self, name: str) -> None:
        if self.files.shared is None:
            super().remove_from_storage(name)
        else:
            self.files.shared.remove(name)

    def settle_disks(self, uuid: str) -> None:
        if self.files.shared is not None:
            with self.files.locked(uuid):
                self.files.shared.settle(self.files.disks(uuid))

    def take_over_disks(self, uuid: str, names: list[str], dead_host: str) -> list[str]:
        folder = self.files.disks(uuid)
        with self.files.locked(uuid):
            return [name for name in names if self._disk_maker.take_over(folder / name, dead_host)]

    # copied while the guest runs

    supports_warm_copy = True

    def begin_round(
        self, instance: Instance, names: list[str], number: int, *, since: int | None, flatten: bool
    ) -> Round:
        uuid = instance.uuid
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is None or guest.power_state is not PowerState.RUNNING:
                raise WarmCopyImpossible(f"Guest {uuid} does not run.", details=self.hostname)
            self._catch_up(guest)
            folder = self.files.disks(uuid)
            # The first round is never the last one before the guest is powered off: nothing has to stand still for it.
            with agent.still(self.files, guest, instance) if since is not None else nullcontext():
                begun = self._rounds.begin(
                    uuid, {name: folder / name for name in names}, number, since=since, flatten=flatten
                )
                if self.files.shared is not None:
                    RoundSnapshots(self.files.shared).keep(folder, number, begun.since)
                return begun

    def has_round(self, instance: Instance, number: int) -> bool:
        with self.files.locked(instance.uuid):
            return self._rounds.has(instance.uuid, number)

    def open_round(self, instance: Instance, name: str, number: int) -> AbstractContextManager[DiskReader]:
        return self._rounds.open(instance.uuid, name, number)

    def end_round(self, instance: Instance, number: int) -> None:
        with self.files.locked(instance.uuid):
            self._rounds.end(instance.uuid, number)

    def open_changes(self, instance: Instance, name: str, since: int) -> AbstractContextManager[DiskReader | None]:
        return self._rounds.open_changes(instance.uuid, name, self.files.disks(instance.uuid) / name, since)

    def limit_writes(self, instance: Instance, bytes_per_second: int | None) -> None:
        with self.files.locked(instance.uuid):
            guest = self.files.guests.get(instance.uuid)
            if guest is not None:
                self._catch_up(guest)
                guest.write_limit = bytes_per_second
                self.files.save(guest)

    def end_rounds(self, uuid: str) -> None:
        with self.files.locked(uuid):
            if self.files.shared is not None:
                RoundSnapshots(self.files.shared).discard(self.files.disks(uuid), self.files.stash(uuid))
            self._rounds.discard(uuid)

    def list_temporary_files(self) -> dict[str, list[str]]:
        return {"rounds": self._rounds.servers(), "incoming": self.files.all_incoming()}

    def discard_temporary_files(self, kind: str, uuid: str) -> None:
        if kind == "rounds":
            self.end_rounds(uuid)
        elif kind == "incoming":
            with self.files.locked(uuid):
                self.files.discard_incoming(uuid)

    def open_copy(self, copy: virt.DiskCopy) -> AbstractContextManager[DiskWriter]:
        return rounds.open_copy(self._disk_maker.copied_to(copy))

    def has_copy(self, path: Path) -> bool:
        return self._disk_maker.has_copy(path)

    def discard_copy(self, path: Path) -> None:
        self._disk_maker.discard_copy(path)

    def adopt_disks(self, spec: virt.GuestSpec) -> None:
        folder = self.files.disks(spec.instance.uuid)
        with self.files.locked(spec.instance.uuid):
            durable.make_folder(folder)
            if spec.root_disk is not None:
                self._disk_maker.root(folder / virt.ROOT_DISK, spec.root_disk)
            for local in spec.local_disks:
                self._disk_maker.local(folder / local.name, local)
            firmware.take(folder, spec)
