"""The libvirt driver: guests of one host through its libvirtd.

This class says in which order things happen. How each of them is done is in a file of its own: `connection`, `hypervisor_events`,
`domain_xml` (the definition of a guest), `disks`, `blank_disks`, `volumes`, `network`, `devices`, `power`, `host`, `probe`.

The domain of a guest has the server's uuid and is found by it, whatever its name is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from causeway import durable
from causeway.errors import GuestFailed
from causeway.hardware import firmware, guest_devices
from causeway.model.block_device import BlockDevice
from causeway.model.console import ConsoleType
from causeway.model.diagnostics import Diagnostics
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.states import PowerState
from causeway.virt import folder_owner
from causeway.virt.driver import (
    ROOT_DISK,
    DiskExport,
    ExpectedDisk,
    GuestFacts,
    GuestSpec,
    HostFacts,
    HostHardware,
    allocated_bytes,
    nothing_to_wait_for,
)
from causeway.virt.libvirt import agent, devices, diagnostics, power, vhost_user
from causeway.virt.libvirt.capabilities import hardware, host, host_traits
from causeway.virt.libvirt.capabilities.probe import decide_virt_type
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.consoles import ConsoleSettings, SerialPorts, listener
from causeway.virt.libvirt.definition import DefinedGuests
from causeway.virt.libvirt.guest_storage import GuestStorage
from causeway.virt.libvirt.guest_volumes import GuestVolumes
from causeway.virt.libvirt.guest_xml import uefi
from causeway.virt.libvirt.guest_xml.domain_xml import (
    card_model,
    device_in_folder,
    device_of_serial,
    domain_xml,
    interface_xml,
)
from causeway.virt.libvirt.guest_xml.processor import Processor
from causeway.virt.libvirt.guest_xml.smbios import Serial, host_serial
from causeway.virt.libvirt.live import dirty_memory, live_target
from causeway.virt.libvirt.live.live_settings import LiveSettings
from causeway.virt.libvirt.live.migration import LiveMigrations
from causeway.virt.libvirt.network import NetworkAgent, Ports, is_gone
from causeway.virt.libvirt.port_devices import addresses_of_devices, device_of_port
from causeway.virt.libvirt.storage import copies, disk_pools, rescue, rounds, saved_memory
from causeway.virt.libvirt.storage.block_copies import BlockCopies
from causeway.virt.libvirt.storage.ceph_secrets import CephSecrets
from causeway.virt.libvirt.storage.ceph_volumes import CephAccount, CephVolumes
from causeway.virt.libvirt.storage.disk_pools import DiskPool
from causeway.virt.libvirt.storage.kept_files import SWTPM, KeptFiles
from causeway.virt.libvirt.storage.rbd_disks import RbdDisks
from causeway.virt.libvirt.storage.shares import Shares
from causeway.virt.libvirt.storage.snapshot_rounds import SnapshotRounds
from causeway.virt.libvirt.storage.volume_secrets import VolumeSecrets
from causeway.virt.libvirt.storage.volumes import Volumes, direct_io_works
from causeway.virt.undo import undone_on_failure


class LibvirtDriver(DefinedGuests, GuestStorage, GuestVolumes):
    """A host named ``hostname`` in Causeway, whose libvirtd is at ``uri``. Timeouts are seconds.

    ``virt_type``: ``kvm``, ``qemu`` (emulation), or ``auto``: KVM if it really works. ``network_agent``: what makes bridges on
    this host; None: the network service has its own agent. ``call_timeout``: for one call of libvirt. ``disk_timeout``: to read
    or write a whole disk. ``detach_timeout``: for a guest to release a device. ``mount_dir``: where NFS shares are mounted; None:
    beside the guests' folders.
    """

    supports_migrate_to_same_host = False

    def __init__(
        self,
        uri: str,
        hostname: str,
        instances_dir: Path,
        *,
        virt_type: str = "auto",
        machine: str = "pc",
        serial: Serial = Serial.UNIQUE,
        swtpm: Path = SWTPM,
        has_tpm: bool = False,
        cpu: Processor | None = None,
        network_agent: NetworkAgent | None = None,
        limits: host.HostLimits | None = None,
        host_ip: str = "127.0.0.1",
        probe_cache: Path | None = None,
        call_timeout: float = 60.0,
        disk_timeout: float = 3600.0,
        detach_timeout: float = 60.0,
        name_template: str = "instance-%(uuid)s",
        live: LiveSettings | None = None,
        consoles: ConsoleSettings | None = None,
        ceph: CephAccount | None = None,
        pool: DiskPool | None = None,
        mount_dir: Path | None = None,
    ) -> None:
        if virt_type not in ("auto", "kvm", "qemu"):
            raise ValueError(f"virt_type must be auto, kvm or qemu, not {virt_type!r}")
        self._hostname = hostname
        self._host_ip = host_ip
        self._limits = limits or host.HostLimits()
        self._wanted_virt_type = virt_type
        self._virt_type = "qemu"
        self._machine = machine
        self._serial = serial
        self._host_serial: str | None = None
        self._name_template = name_template
        self._probe_cache = probe_cache or instances_dir / "virt-type.json"
        self._detach_timeout = detach_timeout
        self._instances_dir = instances_dir
        self._connection = Connection(uri, name=hostname, timeout=call_timeout)
        secrets = CephSecrets(self._connection)
        opened = disk_pools.open_disks(pool, instances_dir, disk_timeout, hostname, secrets)
        self._disks, self._pool_gib, self._close_pool = opened.disks, opened.gib, opened.close
        self._kept = KeptFiles(self._disks, swtpm)
        self._processor = cpu or Processor()
        self._loaders = uefi.loaders()
        self._capabilities = host_traits.Capabilities(self._loaders, has_tpm=has_tpm)
        self._mount_dir = mount_dir
        self._volumes = Volumes(
            hostname,
            Shares(
                mount_dir or instances_dir / "mnt",
                lambda folder: devices.guests_with(self._connection, lambda xml: device_in_folder(xml, folder)),
            ),
            instances_dir / "locks",
            lambda volume_id: devices.guests_with(self._connection, lambda xml: device_of_serial(xml, volume_id)),
            CephVolumes(secrets, ceph or CephAccount()),
            VolumeSecrets(self._connection),
        )
        self._ports = Ports(network_agent)
        self._copies = BlockCopies(self._connection, instances_dir)
        self._consoles = consoles or ConsoleSettings()
        self._serial_ports = SerialPorts(self._connection, self._consoles.ports)
        self._rounds = rounds.Rounds(self._connection, self._disks)
        self._snapshots = (
            SnapshotRounds(self._connection, self._disks, hostname) if isinstance(self._disks, RbdDisks) else None
        )
        self._live = LiveMigrations(self._connection, live or LiveSettings(address=host_ip), self._disks.folder)
        self._cache = "none"
        self._shared_cpus: list[int] = []

    def start(self) -> None:
        folder_owner.claim(self._instances_dir, self._hostname)
        if self._mount_dir is not None:
            folder_owner.claim(self._mount_dir, self._hostname, "unmount each other's volumes")
        self._cache = "none" if direct_io_works(self._instances_dir) else "writeback"
        self._virt_type = decide_virt_type(self._wanted_virt_type, self._probe_cache)
        self._connection.start()
        self._connection.call(
            "say which processors it has", lambda to: self._processor.choose(to, self._virt_type), again=True
        )
        self.stands_still_when_live = self._connection.call(
            "say its version", lambda hypervisor: dirty_memory.is_missed_of(hypervisor, self._virt_type), again=True
        )
        self._host_serial = self._connection.call(
            "say its serial number", lambda to: host_serial(self._serial, to.getCapabilities()), again=True
        )
        self._disks.start()
        self._rounds.recover()
        self._disks.delete_stale_exports()

    def close(self) -> None:
        self._connection.close()
        self._close_pool()

    def host_facts(self) -> HostFacts:
        limits = self._limits_of_storage()
        return self._connection.call(
            "describe its host",
            lambda connection: host.host_facts(
                connection,
                hostname=self._hostname,
                virt_type=self._virt_type,
                instances_dir=self._instances_dir,
                limits=limits,
                host_ip=self._host_ip,
                capabilities=self._capabilities,
            ),
            again=True,
        )

    def _limits_of_storage(self) -> host.HostLimits:
        """The host's limits. The disk space of a pool is the pool's, not that of a file system of the host."""
        if self._pool_gib is None or self._limits.local_gb is not None:
            return self._limits
        return dataclasses.replace(self._limits, local_gb=self._pool_gib())

    def host_hardware(self) -> HostHardware:
        return self._connection.call("describe its hardware", hardware.host_hardware, again=True)

    def confine(self, shared_cpus: list[int]) -> None:
        self._shared_cpus = shared_cpus

    def list_guests(self) -> dict[str, PowerState]:
        def ask(connection: Any) -> dict[str, PowerState]:
            return {domain.UUIDString(): power.power_state_of(domain) for domain in connection.listAllDomains()}

        return self._connection.call("list its guests", ask, again=True)

    def inspect(self, uuid: str) -> GuestFacts:
        def ask(connection: Any) -> tuple[PowerState, int, int] | None:
            domain = power.find(connection, uuid)
            if domain is None:
                return None
            _, memory_kib, _, vcpus, _ = domain.info()
            return power.power_state_of(domain), vcpus, memory_kib // 1024

        guest = self._connection.call(f"describe guest {uuid}", ask, again=True)
        power_state, vcpus, memory_mb = guest or (None, 0, 0)
        return GuestFacts(
            uuid=uuid,
            power_state=power_state,
            vcpus=vcpus,
            memory_mb=memory_mb,
            has_disks=self._disks.folder(uuid).exists(),
            has_stashed_disks=self._disks.stashed_folder(uuid).exists(),
        )

    def own_folders(self) -> list[Path]:
        return [self._instances_dir]

    def list_disks(self) -> dict[str, bool]:
        return self._disks.by_uuid()

    def disk_bytes(self, uuid: str) -> int | None:
        return allocated_bytes(self._disks.folder(uuid))

    def copy_faults(
        self, uuid: str, disks: list[ExpectedDisk], volume_ids: list[str], *, stashed: bool = False
    ) -> list[str]:
        timeout, shared = self._disks.timeout, self._disks.in_storage(uuid, stashed=stashed)
        found = self._kept.faults(uuid, stashed=stashed)
        found += self._disks.faults_in_storage(uuid, [each for each in disks if each.name in shared], stashed=stashed)
        local = [each for each in disks if each.name not in shared]
        if stashed:
            return found + copies.of_folder(self._disks.stashed_folder(uuid), local, timeout)
        return found + copies.of_guest(self._connection, uuid, self._disks.folder(uuid), local, volume_ids, timeout)

    # guests

    def spawn(
        self, spec: GuestSpec, *, vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None
    ) -> PowerState:
        uuid = spec.instance.uuid
        if power.state(self._connection, uuid) == PowerState.RUNNING:
            return PowerState.RUNNING
        power.check_not_in_transit(self._connection, uuid)
        power.destroy_and_undefine(self._connection, uuid)
        with undone_on_failure() as undo:
            self._make_root(spec, undo)
            return self._start(spec, undo, vifs_plugged or nothing_to_wait_for)

    def power_on(
        self, spec: GuestSpec, *, vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None
    ) -> PowerState:
        uuid = spec.instance.uuid
        power.check_not_in_transit(self._connection, uuid)
        state = power.state(self._connection, uuid)
        if state == PowerState.PAUSED:
            power.start_processors(self._connection, uuid)
        if state in (PowerState.RUNNING, PowerState.PAUSED):
            return PowerState.RUNNING
        self._disks.make_folder(uuid)
        waits = vifs_plugged if any(map(is_gone, spec.vifs)) else None
        with undone_on_failure() as undo:
            return self._start(spec, undo, waits or nothing_to_wait_for)

    def power_off(self, uuid: str, timeout: float) -> None:
        if power.state(self._connection, uuid) is None:
            raise GuestFailed(f"There is no guest of server {uuid} on this host.")
        power.shut_down(self._connection, uuid, timeout)

    def reboot(
        self,
        spec: GuestSpec,
        *,
        hard: bool,
        timeout: float,
        vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None,
    ) -> PowerState:
        uuid = spec.instance.uuid
        was_here = power.state(self._connection, uuid) is not None
        power.shut_down(self._connection, uuid, 0 if hard else timeout)
        if was_here and power.state(self._connection, uuid) is None:
            raise GuestFailed(f"The guest of server {uuid} went to another host meanwhile.")
        return self.power_on(spec, vifs_plugged=vifs_plugged)

    def pause(self, uuid: str) -> None:
        power.stop_processors(self._connection, uuid)

    def unpause(self, uuid: str) -> None:
        power.start_processors(self._connection, uuid)
        self.set_clock(uuid)

    def suspend(self, uuid: str) -> None:
        saved_memory.save(self._connection, self._disks, uuid)
        if self.saved_memory(uuid) is None:
            # `save` also accepts memory that an earlier move has stashed: that is not this guest's.
            raise GuestFailed(f"The guest of server {uuid} does not run: it can't be suspended.")

    def resume(self, spec: GuestSpec) -> PowerState:
        uuid = spec.instance.uuid
        if self.saved_memory(uuid) is not None:
            with undone_on_failure() as undo:
                undo.callback(self.define_suspended, spec)
                self.wake(spec)
        if saved_memory.is_woken(self._connection, self._disks, uuid):
            self.resume_woken(uuid, is_paused=False)
            return PowerState.RUNNING
        return self.power_on(spec)

    def destroy(self, uuid: str, vifs: list[Vif], volumes: list[BlockDevice], *, destroy_disks: bool) -> None:
        power.destroy_and_undefine(self._connection, uuid)
        self._serial_ports.release(uuid)
        self._volumes.secrets.discard_tpm(uuid)
        for vif in vifs:
            self._ports.unplug(uuid, vif)
        for volume in volumes:
            self._volumes.disconnect(uuid, volume)
        if destroy_disks:
            self._delete_disks(uuid)
        else:
            self._kept.put_beside_disks(uuid)
            live_target.is_no_attempt(self._disks.folder(uuid))

    # rescue

    def prepare_rescue(self, spec: GuestSpec) -> None:
        uuid = spec.instance.uuid
        if spec.rescue is None or spec.rescue.base is None:
            raise GuestFailed(f"There is no image to rescue server {uuid} with.")
        rescue.check(spec.rescue.image)
        if not any(volume.is_root for volume in spec.volumes) and not self._disks.has(uuid, ROOT_DISK):
            raise GuestFailed(f"Server {uuid} has no root disk on this host.")
        self._disks.make_folder(uuid)
        self._disks.create_rescue(uuid, spec.rescue.base)

    def has_rescue_disk(self, uuid: str) -> bool:
        return self._disks.rescue(uuid).exists()

    def is_rescued(self, uuid: str) -> bool:
        return rescue.has_disk(self._connection, uuid, self._disks.rescue(uuid))

    def delete_rescue_disk(self, uuid: str) -> None:
        if self.is_rescued(uuid):
            raise GuestFailed(f"The guest of server {uuid} uses its rescue disk: it is not deleted.")
        durable.delete(self._disks.rescue(uuid))

    def console_output(self, uuid: str) -> bytes:
        return self._disks.console_output(uuid)

    def console_listener(self, uuid: str, kind: ConsoleType) -> tuple[str, int]:
        return listener(self._connection, self._consoles, uuid, kind)

    def diagnostics(self, uuid: str) -> Diagnostics:
        return diagnostics.diagnostics(self._connection, uuid, self._virt_type)

    def trigger_crash_dump(self, uuid: str) -> None:
        power.inject_nmi(self._connection, uuid)

    def trim_guest(self, instance: Instance) -> None:
        agent.trim_guest(self._connection, instance)

    def set_password(self, instance: Instance, user: str, password: str) -> None:
        agent.set_password(self._connection, instance, user, password)

    def set_clock(self, uuid: str) -> None:
        agent.set_clock(self._connection, uuid)

    # devices

    def port_devices(self, uuid: str) -> list[str] | None:
        def ask(hypervisor: Any) -> list[str] | None:
            domain = power.find(hypervisor, uuid)
            return None if domain is None else addresses_of_devices(domain.XMLDesc())

        return self._connection.call(f"describe guest {uuid}", ask, again=True)

    def attach_interface(self, uuid: str, vif: Vif) -> None:
        xml = devices.asked(self._connection, uuid, str)
        if xml is not None:
            vhost_user.require_shared_memory(vif, ET.fromstring(xml))
        with undone_on_failure() as undo:
            self._ports.plug(uuid, vif)
            undo.callback(self._ports.unplug, uuid, vif)
            device = interface_xml(vif, card_model(xml) if xml is not None else None)
            devices.attach(self._connection, uuid, device, lambda xml: device_of_port(xml, vif))

    def detach_interface(self, uuid: str, vif: Vif) -> None:
        devices.detach(
            self._connection,
            uuid,
            lambda xml: device_of_port(xml, vif),
            what=f"port {vif.id}",
            timeout=self._detach_timeout,
        )
        self._ports.unplug(uuid, vif)

    # disks of a move

    def export_kept_state(self, instance: Instance) -> AbstractContextManager[DiskExport]:
        if power.state(self._connection, instance.uuid) is PowerState.RUNNING:
            raise GuestFailed(
                f"The state of the firmware of server {instance.uuid} can't be sent while its guest runs."
            )
        return self._kept.export(instance.uuid)

    def stash_disks(self, uuid: str) -> None:
        power.check_off(self._connection, uuid, "stashed")
        self._disks.stash(uuid)

    def restore_stashed_disks(self, uuid: str) -> None:
        power.check_off(self._connection, uuid, "restored")
        self._disks.restore(uuid)

    def delete_stashed_disks(self, uuid: str) -> None:
        self._disks.delete_stashed(uuid)

    def delete_disks(self, uuid: str) -> None:
        power.check_off(self._connection, uuid, "deleted")
        self._delete_disks(uuid)

    def _delete_disks(self, uuid: str) -> None:
        self._kept.delete(uuid)
        self._disks.delete(uuid)

    def _start(
        self, spec: GuestSpec, undo: ExitStack, vifs_plugged: Callable[[], AbstractContextManager[None]]
    ) -> PowerState:
        """Connects volumes, plugs ports, defines the guest and starts it. Registers with ``undo`` how to undo each of these."""
        uuid = spec.instance.uuid
        # Saved memory does not match disks that a boot changes.
        saved_memory.discard(self._disks, uuid)
        xml = self._make_ready(spec, undo)
        if not spec.power_on:
            power.define(self._connection, uuid, xml)
            return PowerState.SHUTDOWN
        with vifs_plugged():
            self._plug(spec, undo)
            power.start_paused(self._connection, uuid, xml)
        power.start_processors(self._connection, uuid)
        return PowerState.RUNNING

    def _make_root(self, spec: GuestSpec, undo: ExitStack) -> None:
        """Makes the folder and the root disk in it. A folder that did not exist before is deleted if the attempt fails."""
        uuid = spec.instance.uuid
        if not self._disks.folder(uuid).exists():
            undo.callback(self._delete_disks, uuid)
        self._disks.make_folder(uuid)
        self._take_kept(spec)
        if spec.root_disk is not None:
            self._disks.create_root(uuid, spec.root_disk)

    def _make_ready(self, spec: GuestSpec, undo: ExitStack) -> str:
        """Makes and connects everything that the guest opens, except its ports. Returns the XML of its definition."""
        uuid = spec.instance.uuid
        for local in spec.local_disks:
            self._disks.make_local(uuid, local)
        live_target.is_no_attempt(self._disks.folder(uuid))
        self._disks.check_usable(uuid)
        self._disks.write_config_drive(uuid, spec.config_drive)
        self._disks.shorten_console(uuid)
        if firmware.of_instance(spec.instance).tpm is not None:
            self._kept.place(uuid)
        volumes = []
        for volume in spec.volumes:
            volumes.append(self._volumes.connect(uuid, volume))
            undo.callback(self._volumes.disconnect, uuid, volume)
        return domain_xml(self._hardware(spec, volumes))

    def _plug(self, spec: GuestSpec, undo: ExitStack) -> None:
        """Plugs the ports. Also registers how to undo the start of the guest, which follows."""
        uuid = spec.instance.uuid
        self._plug_ports(spec, undo)
        undo.callback(power.destroy_and_undefine, self._connection, uuid)

    def _plug_ports(self, spec: GuestSpec, undo: ExitStack) -> None:
        uuid, flavor = spec.instance.uuid, spec.instance.flavor
        queues = guest_devices.devices_of(flavor, spec.instance.image_meta).queues(flavor.vcpus)
        for vif in spec.vifs:
            self._ports.plug(uuid, vif, has_queues=queues > 1)
            undo.callback(self._ports.unplug, uuid, vif)
