"""`SimulatedDriver`: the driver interface on small files (`simulated.host_files` says which)."""

from __future__ import annotations

import logging
import time
import uuid as uuids
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import msgspec
import os_traits

from causeway import durable
from causeway.errors import ClaimRefused, GuestFailed, WarmCopyImpossible
from causeway.model import machine_type
from causeway.model.block_device import BlockDevice
from causeway.model.console import ConsoleType
from causeway.model.diagnostics import CpuDiagnostics, Diagnostics, DiskDiagnostics, NicDiagnostics
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.states import PowerState
from causeway.virt import driver as virt
from causeway.virt.simulated import activity, agent, disk, firmware, rounds, volume
from causeway.virt.simulated.guest import Guest, attached, define, port
from causeway.virt.simulated.hardware import SimulatedHardware, host_hardware
from causeway.virt.simulated.host_files import HostFiles
from causeway.virt.simulated.link import Link
from causeway.virt.simulated.live import LiveDriver
from causeway.virt.simulated.saved_memory import SavedMemoryDriver
from causeway.virt.simulated.serial import SerialConsoles
from causeway.virt.simulated.volume_jobs import VolumeJobsDriver
from causeway.virt.simulated.watched import WatchedDriver
from causeway.virt.warm import DiskReader, DiskWriter, Round

LOG = logging.getLogger(__name__)

CONSOLE_LIMIT = 64 * 1024


class SimulatedDriver(LiveDriver, SavedMemoryDriver, VolumeJobsDriver, WatchedDriver):
    """A host named ``hostname`` that keeps everything in ``state_dir``.

    With ``peers_dir``, the directory that holds the state directories of all hosts, the driver looks whenever it starts a
    guest whether another host runs it already. As a real hypervisor it starts it all the same, but remembers it in
    ``double_starts``: tests assert that this stays empty.

    ``live_network``: guests go live to the hosts of the same one. ``console_address``: their serial consoles listen there.
    """

    supports_warm_copy = True

    def __init__(
        self,
        hostname: str,
        state_dir: Path,
        *,
        hardware: SimulatedHardware | None = None,
        peers_dir: Path | None = None,
        live_network: str = "",
        console_address: str = "127.0.0.1",
    ) -> None:
        super().__init__()
        self.hostname = hostname
        self.live_network = live_network
        self.double_starts: list[str] = []
        self._hardware = hardware or SimulatedHardware()
        self._peers_dir = peers_dir
        self._state_dir = state_dir
        self.files = HostFiles(hostname, state_dir)
        self._serial = SerialConsoles(self.files, console_address)
        self.link = Link(self._hardware.clock, self._hardware.link_speed, self._hardware.link_latency)
        self.habits = self._hardware.habits
        self._rounds = rounds.Rounds(state_dir, self.link)
        self._began = time.monotonic()

    def start(self) -> None:
        self.link.stopping.clear()
        self.files.load()

    def close(self) -> None:
        self.link.stopping.set()
        self._serial.close()

    def host_facts(self) -> virt.HostFacts:
        return virt.HostFacts(
            hypervisor_hostname=self.hostname,
            hypervisor_type="simulated",
            hypervisor_version=1000000,
            vcpus=self._hardware.vcpus,
            memory_mb=self._hardware.memory_mb,
            local_gb=self._hardware.local_gb,
            cpu_info={
                "arch": "x86_64",
                "model": "simulated",
                "vendor": "Causeway",
                "topology": {"cells": 1, "sockets": 1, "cores": self._hardware.vcpus, "threads": 1},
                "features": [],
            },
            supported_instances=[["x86_64", "simulated", "hvm"]],
            # Whole days: what changes often would be written with every report.
            uptime=f"up {int(time.monotonic() - self._began) // 86400} days",
            traits=[
                os_traits.HW_ARCH_X86_64,
                os_traits.COMPUTE_FIRMWARE_BIOS,
                os_traits.COMPUTE_FIRMWARE_UEFI,
                os_traits.COMPUTE_IMAGE_TYPE_QCOW2,
                os_traits.COMPUTE_IMAGE_TYPE_RAW,
                os_traits.COMPUTE_NET_ATTACH_INTERFACE,
                os_traits.COMPUTE_NET_VIF_MODEL_VIRTIO,
                os_traits.COMPUTE_RESCUE_BFV,
                os_traits.COMPUTE_SECURITY_TPM_1_2,
                os_traits.COMPUTE_SECURITY_TPM_2_0,
                os_traits.COMPUTE_SECURITY_TPM_CRB,
                os_traits.COMPUTE_SECURITY_TPM_TIS,
                os_traits.COMPUTE_SECURITY_UEFI_SECURE_BOOT,
                os_traits.COMPUTE_STORAGE_BUS_VIRTIO,
                os_traits.COMPUTE_VOLUME_MULTI_ATTACH,
            ],
        )

    def host_hardware(self) -> virt.HostHardware:
        return host_hardware(self._hardware)

    def list_guests(self) -> dict[str, PowerState]:
        return self.files.list_guests()

    def inspect(self, uuid: str) -> virt.GuestFacts:
        guest = self.files.guests.get(uuid)
        return virt.GuestFacts(
            uuid=uuid,
            power_state=guest.power_state if guest else None,
            vcpus=guest.vcpus if guest else 0,
            memory_mb=guest.memory_mb if guest else 0,
            has_disks=self.files.disks(uuid).is_dir(),
            has_stashed_disks=self.files.stash(uuid).is_dir(),
        )

    def list_disks(self) -> dict[str, bool]:
        return self.files.list_disks()

    def copy_faults(
        self, uuid: str, disks: list[virt.ExpectedDisk], volume_ids: list[str], *, stashed: bool = False
    ) -> list[str]:
        with self.files.locked(uuid):
            guest = None if stashed else self.files.guests.get(uuid)
            folder = self.files.stash(uuid) if stashed else self.files.disks(uuid)
            found = disk.faults(folder, disks) + firmware.faults(folder)
        known = {attached.volume_id: attached.path for attached in guest.volumes} if guest is not None else {}
        for volume_id in volume_ids if guest is not None else ():
            if not Path(known.get(volume_id, "/dev/null")).is_file():
                found.append(f"volume {volume_id} is not connected to the guest")
        return found

    def disk_bytes(self, uuid: str) -> int | None:
        folder = self.files.disks(uuid)
        taken = virt.allocated_bytes(folder)
        with suppress(GuestFailed):
            # One that is missing or damaged is reported by `copy_faults`.
            taken += disk.load(folder / virt.ROOT_DISK).data
        return taken

    def disk_room(self, *, over_commit: bool) -> int:
        room = self._hardware.local_gb << 30
        for folder in self.files.disks_dir.iterdir():
            for path in (path for path in folder.iterdir() if path.name.startswith("disk")):
                found = disk.decode(path.read_bytes())
                taken = path.stat().st_size + (found.data if found is not None else 0)
                room -= taken if over_commit or found is None else max(taken, found.header.size)
        return room

    # guests

    def machine_type(self, instance: Instance) -> str:
        properties = instance.image_meta.properties if instance.image_meta is not None else {}
        return machine_type.recorded(instance.system_metadata) or str(properties.get("hw_machine_type") or "pc")

    def spawn(
        self, spec: virt.GuestSpec, *, vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None
    ) -> PowerState:
        uuid = spec.instance.uuid
        with self.files.locked(uuid):
            before = self.files.guests.get(uuid)
            if before is not None and before.power_state is PowerState.RUNNING:
                raise GuestFailed(f"Guest {uuid} is running already.", details=self.hostname)
            with self.files.undone_on_failure(uuid, before):
                if spec.root_disk is not None:
                    disk.create(self.files.disks(uuid) / virt.ROOT_DISK, spec.root_disk)
                firmware.take(self.files.disks(uuid), spec)
                return self._define_and_boot(spec, vifs_plugged or virt.nothing_to_wait_for)

    def power_on(self, spec: virt.GuestSpec) -> PowerState:
        uuid = spec.instance.uuid
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            self._refuse_leaving(guest)
            if guest is not None and guest.power_state is PowerState.RUNNING:
                return PowerState.RUNNING
            with self.files.undone_on_failure(uuid, guest):
                return self._define_and_boot(spec, virt.nothing_to_wait_for)

    def power_off(self, uuid: str, timeout: float) -> None:  # noqa: ARG002 (these guests obey at once)
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is not None and guest.power_state is not PowerState.SHUTDOWN:
                self._catch_up(guest)
                activity.stop(guest)
                guest.end_copies()
                guest.power_state, guest.going_to, guest.was = PowerState.SHUTDOWN, None, None
                self.files.save(guest)

    def reboot(self, spec: virt.GuestSpec, *, hard: bool, timeout: float) -> PowerState:  # noqa: ARG002
        uuid = spec.instance.uuid
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            self._refuse_leaving(guest)
            if hard:
                return self._define_and_boot(spec, virt.nothing_to_wait_for)
            if guest is None or guest.power_state is not PowerState.RUNNING:
                raise GuestFailed(f"Guest {uuid} does not run: only a hard reboot can start it.", details=self.hostname)
            self._catch_up(guest)
            self._boot(guest)
            return guest.power_state

    def pause(self, uuid: str) -> None:
        self._set_power(uuid, PowerState.PAUSED, PowerState.RUNNING)

    def unpause(self, uuid: str) -> None:
        self._look_for_others(uuid)
        self._set_power(uuid, PowerState.RUNNING, PowerState.PAUSED)

    def suspend(self, uuid: str) -> None:
        self._set_power(uuid, PowerState.SUSPENDED, PowerState.RUNNING)

    def resume(self, spec: virt.GuestSpec) -> PowerState:
        uuid = spec.instance.uuid
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if self.saved_memory(uuid) is not None:
                # It was suspended on another host, or came back from its way there.
                self._look_for_others(uuid)
                self.wake(spec)
                self.resume_woken(uuid, is_paused=False)
                return PowerState.RUNNING
            if guest is None or guest.power_state is not PowerState.SUSPENDED:
                return self.power_on(spec)
            self._look_for_others(uuid)
            self._set_power(uuid, PowerState.RUNNING, PowerState.SUSPENDED)
            return PowerState.RUNNING

    def _set_power(self, uuid: str, becomes: PowerState, was: PowerState) -> None:
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            self._refuse_leaving(guest)
            if guest is None or guest.power_state not in (was, becomes):
                actual = guest.power_state.name.lower() if guest is not None else "not there"
                raise GuestFailed(f"Guest {uuid} can't become {becomes.name.lower()}: it is {actual}.")
            self._catch_up(guest)
            if guest.power_state is not becomes:
                guest.power_state = becomes
                if becomes is PowerState.RUNNING:
                    activity.resume(guest, self.link.clock.time())
                else:
                    activity.stop(guest)
            self.files.save(guest)

    def destroy(
        self,
        uuid: str,
        vifs: list[Vif],  # noqa: ARG002 (ports and volumes go with the definition)
        volumes: list[BlockDevice],  # noqa: ARG002
        *,
        destroy_disks: bool,
    ) -> None:
        with self.files.locked(uuid):
            self.files.discard_incoming(uuid)
            self.files.undefine(uuid)
            if destroy_disks:
                durable.delete_tree(self.files.disks(uuid))

    def prepare_rescue(self, spec: virt.GuestSpec) -> None:
        uuid = spec.instance.uuid
        if spec.rescue is None or spec.rescue.base is None:
            raise GuestFailed(f"There is no image to rescue guest {uuid} with.", details=self.hostname)
        with self.files.locked(uuid):
            folder = self.files.disks(uuid)
            if not any(volume.is_root for volume in spec.volumes):
                disk.load(folder / virt.ROOT_DISK)
            durable.make_folder(folder)
            image = virt.RootDisk(base=spec.rescue.base, base_image_id=spec.rescue.image.image_id)
            disk.create(folder / virt.RESCUE_DISK, image)

    def has_rescue_disk(self, uuid: str) -> bool:
        return (self.files.disks(uuid) / virt.RESCUE_DISK).exists()

    def is_rescued(self, uuid: str) -> bool:
        guest = self.files.guests.get(uuid)
        return guest is not None and guest.is_rescued

    def delete_rescue_disk(self, uuid: str) -> None:
        with self.files.locked(uuid):
            if self.is_rescued(uuid):
                raise GuestFailed(f"Guest {uuid} has its rescue disk: it stays.", details=self.hostname)
            durable.delete(self.files.disks(uuid) / virt.RESCUE_DISK)

    def console_output(self, uuid: str) -> bytes:
        try:
            return (self.files.disks(uuid) / "console.log").read_bytes()[-CONSOLE_LIMIT:]
        except FileNotFoundError:
            return b""

    def console_listener(self, uuid: str, kind: ConsoleType) -> tuple[str, int]:
        if kind is not ConsoleType.SERIAL:
            return super().console_listener(uuid, kind)
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is None or guest.power_state not in (PowerState.RUNNING, PowerState.PAUSED):
                raise GuestFailed(f"Guest {uuid} does not run.", details=self.hostname)
            return self._serial.address, self._serial.port_of(uuid)

    def diagnostics(self, uuid: str) -> Diagnostics:
        with self.files.locked(uuid):
            guest = self._running(uuid)
            return Diagnostics(
                # The API has no word for this one.
                driver="libvirt",
                hypervisor="simulated",
                hypervisor_os="simulated",
                memory_maximum=guest.memory_mb,
                memory_used=guest.memory_mb,
                cpus=[CpuDiagnostics(number) for number in range(guest.vcpus)],
                nics=[NicDiagnostics(port.id, port.mac) for port in guest.ports],
                disks=[DiskDiagnostics(device) for device in guest.devices()],
            )

    def trigger_crash_dump(self, uuid: str) -> None:
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            self._refuse_leaving(guest)
            if guest is None or guest.power_state not in (PowerState.RUNNING, PowerState.PAUSED):
                raise GuestFailed(f"Guest {uuid} is off: there is nothing to dump.", details=self.hostname)
            self.files.append_to_console(uuid, "CAUSEWAY-CRASH-DUMP\n")

    def set_password(self, instance: Instance, user: str, password: str) -> None:
        with self.files.locked(instance.uuid):
            guest = self._running(instance.uuid)
            agent.set_password(self.files, guest, instance, user, password)

    def _running(self, uuid: str) -> Guest:
        guest = self.files.guests.get(uuid)
        if guest is None or guest.power_state is not PowerState.RUNNING:
            raise GuestFailed(f"Guest {uuid} does not run.", details=self.hostname)
        return guest

    # devices

    def volume_connector(self) -> dict[str, Any]:
        return {
            "host": self.hostname,
            "ip": "127.0.0.1",
            "initiator": f"iqn.2026-01.causeway:{self.hostname}",
            "multipath": False,
            "platform": "x86_64",
            "os_type": "linux",
        }

    def check_volume_connectable(self, connection_info: dict[str, Any]) -> None:
        try:
            volume.device_path(connection_info)
        except GuestFailed as error:
            raise ClaimRefused(error.message, details=f"{self.hostname}: {error.details}") from error

    def attach_volume(self, uuid: str, volume: BlockDevice) -> None:
        new = attached(volume)
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is None or new in guest.volumes:
                return
            for other in guest.volumes:
                if other.volume_id == new.volume_id:
                    raise GuestFailed(f"Volume {new.volume_id} is attached to guest {uuid} as {other.device} already.")
            if new.device in guest.devices():
                raise GuestFailed(f"Guest {uuid} has a disk {new.device} already.", details=self.hostname)
            guest.volumes.append(new)
            self.files.save(guest)
            if guest.power_state is PowerState.RUNNING:
                guest.write(new.device, f"attached,id={uuids.uuid4().hex[:8]}")
                self.files.append_to_console(uuid, guest.marker(new.device) + "\n")

    def detach_volume(self, uuid: str, volume: BlockDevice) -> None:
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is not None:
                guest.volumes = [other for other in guest.volumes if other.volume_id != volume.volume_id]
                self.files.save(guest)

    def attach_interface(self, uuid: str, vif: Vif) -> None:
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is None:
                raise GuestFailed(f"There is no guest {uuid} to attach a port to.", details=self.hostname)
            new = port(vif)
            if new in guest.ports:
                return
            if any(other.id == new.id or other.mac == new.mac for other in guest.ports):
                raise GuestFailed(f"Guest {uuid} has a port {new.id} or one with its address {new.mac} already.")
            guest.ports.append(new)
            self.files.save(guest)

    def detach_interface(self, uuid: str, vif: Vif) -> None:
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if guest is not None:
                guest.ports = [other for other in guest.ports if other.id != vif.id]
                self.files.save(guest)

    # disks of a move

    def export_disk(self, instance: Instance, name: str, *, flatten: bool) -> AbstractContextManager[virt.DiskExport]:
        return self._export(instance.uuid, name, flatten=flatten, of_running=False)

    def export_running_disk(self, instance: Instance, name: str) -> AbstractContextManager[virt.DiskExport]:
        return self._export(instance.uuid, name, flatten=True, of_running=True)

    @contextmanager
    def _export(self, uuid: str, name: str, *, flatten: bool, of_running: bool) -> Iterator[virt.DiskExport]:
        target = self.files.exports_dir / f"{uuid}-{uuids.uuid4()}"
        with self.files.locked(uuid):
            guest = self.files.guests.get(uuid)
            if of_running != (guest is not None and guest.power_state is PowerState.RUNNING):
                is_wrong = "does not run" if of_running else "runs"
                raise GuestFailed(f"Guest {uuid} {is_wrong}: its disk can't be exported.", details=self.hostname)
            if guest is not None:
                self._catch_up(guest)
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
                    f"Guest {uuid} runs: what its firmware keeps can't be exported.", details=self.hostname
                )
            durable.make_folder(self.files.disks(uuid))
            target.write_bytes(firmware.pack(self.files.disks(uuid)))
        try:
            yield virt.DiskExport(virt.KEPT_STATE, target, "raw", target.stat().st_size)
        finally:
            target.unlink(missing_ok=True)

    # copying disks while their guest runs

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
            # The first round is never the last one before the guest goes off.
            with agent.still(self.files, guest, instance) if since is not None else nullcontext():
                return self._rounds.begin(
                    uuid, {name: folder / name for name in names}, number, since=since, flatten=flatten
                )

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

    def end_rounds(self, uuid: str) -> None:
        with self.files.locked(uuid):
            self._rounds.discard(uuid)

    def open_copy(self, path: Path, size: int, base: Path | None) -> AbstractContextManager[DiskWriter]:  # noqa: ARG002
        return rounds.open_copy(path)

    def adopt_disks(self, spec: virt.GuestSpec) -> None:
        folder = self.files.disks(spec.instance.uuid)
        with self.files.locked(spec.instance.uuid):
            durable.make_folder(folder)
            if spec.root_disk is not None:
                disk.create(folder / virt.ROOT_DISK, spec.root_disk)
            for local in spec.local_disks:
                disk.create_local(folder / local.name, local)
            firmware.take(folder, spec)

    def stash_disks(self, uuid: str) -> None:
        with self.files.locked(uuid):
            self.files.refuse_if_defined(uuid, "stashed")
            if not self.files.stash(uuid).is_dir() and self.files.disks(uuid).is_dir():
                durable.sync_tree(self.files.disks(uuid))
                durable.rename(self.files.disks(uuid), self.files.stash(uuid))
            else:
                # Done before, perhaps by a process that was killed before it synced that.
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
            durable.rename(self.files.stash(uuid), self.files.disks(uuid))

    def delete_stashed_disks(self, uuid: str) -> None:
        with self.files.locked(uuid):
            durable.delete_tree(self.files.stash(uuid))

    def delete_disks(self, uuid: str) -> None:
        with self.files.locked(uuid):
            self.files.refuse_if_defined(uuid, "deleted")
            durable.delete_tree(self.files.disks(uuid))

    def _refuse_leaving(self, guest: Guest | None) -> None:
        if guest is not None and guest.going_to is not None:
            raise GuestFailed(
                f"Guest {guest.uuid} is being handed over to another host: only that one may resume it.",
                details=self.hostname,
            )

    # inside

    def _define_and_boot(
        self, spec: virt.GuestSpec, vifs_plugged: Callable[[], AbstractContextManager[None]]
    ) -> PowerState:
        uuid = spec.instance.uuid
        power_state = PowerState.PAUSED if spec.power_on else PowerState.SHUTDOWN
        guest = define(spec, self.hostname, self.files.disks(uuid), power_state, self.habits)
        if guest.root_disk is not None:
            disk.load(Path(guest.root_disk))
        durable.make_folder(self.files.disks(uuid))
        for local in spec.local_disks:
            disk.create_local(self.files.disks(uuid) / local.name, local)
        if spec.config_drive:
            durable.write(self.files.disks(uuid) / "disk.config", msgspec.json.encode(spec.config_drive))
        if not spec.power_on:
            self.files.save(guest)
            return guest.power_state
        with vifs_plugged():
            self.files.save(guest)
        self._boot(guest)
        return guest.power_state

    def _look_for_others(self, uuid: str) -> None:
        if self._peers_dir is not None and set(self.running_anywhere(uuid)) - {self.hostname}:
            LOG.error("Guest %s is started on %s while another host runs it", uuid, self.hostname)
            self.double_starts.append(uuid)

    def _boot(self, guest: Guest) -> None:
        self._look_for_others(guest.uuid)
        # It boots: what was saved of an earlier life must not come back to disks that have changed.
        self.discard_memory(guest.uuid)
        guest.power_state = PowerState.RUNNING
        self.files.save(guest)
        firmware.boot(self.files.disks(guest.uuid), guest.firmware)
        self.files.append_to_console(guest.uuid, guest.boot())
        activity.boot(guest, self.link.clock.time())
        self.files.save(guest)

    def _catch_up(self, guest: Guest) -> None:
        """Before anybody looks at what the guest has written. Whoever calls has its lock."""
        if activity.catch_up(guest, self.link.clock.time()):
            self.files.save(guest)
