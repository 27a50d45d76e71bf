"""How guests are defined: what follows from the server's record, the specification and the options of the host."""

from __future__ import annotations

import dataclasses
import logging
from abc import ABC
from pathlib import Path
from typing import Any

from causeway.errors import GuestFailed
from causeway.hardware import firmware, guest_devices
from causeway.hardware.port_devices import passed_through
from causeway.model import tpm_secrets
from causeway.model.instance import Instance
from causeway.virt import kept_state, quiescing
from causeway.virt.driver import ROOT_DISK, GuestSpec
from causeway.virt.libvirt import power
from causeway.virt.libvirt.consoles import ConsoleSettings, SerialPorts
from causeway.virt.libvirt.guest_xml import uefi
from causeway.virt.libvirt.guest_xml.domain_xml import GuestDisk, GuestHardware, Uefi
from causeway.virt.libvirt.guest_xml.machine import machine_of
from causeway.virt.libvirt.guest_xml.processor import Processor
from causeway.virt.libvirt.guest_xml.smbios import Serial
from causeway.virt.libvirt.moving import MovingGuests
from causeway.virt.libvirt.storage import rescue

LOG = logging.getLogger(__name__)


class DefinedGuests(MovingGuests, ABC):
    """A part of `LibvirtDriver`, which sets the attributes."""

    _cache: str
    _consoles: ConsoleSettings
    _loaders: list[uefi.Loader]
    _machine: str
    _name_template: str
    _processor: Processor
    _serial: Serial
    # The serial number that all guests of this host see; None: none, or each another one.
    _host_serial: str | None
    _serial_ports: SerialPorts
    _shared_cpus: list[int]

    def machine_type(self, instance: Instance) -> str:
        return machine_of(instance, firmware.of_instance(instance), self._machine)

    def guest_name(self, uuid: str) -> str | None:
        return self._connection.call(f"name guest {uuid}", lambda to: power.name_of(to, uuid), again=True)

    def _name_of(self, instance: Instance) -> str:
        """The name of a guest. One that exists keeps its name: libvirt allows no second name for a uuid.

        The recorded name may be that of another guest here: cells that Nova had number their servers separately.
        """
        uuid, recorded = instance.uuid, instance.guest_name

        def ask(hypervisor: Any) -> str | None:
            known = power.name_of(hypervisor, uuid)
            if known is None and recorded and power.holder_of(hypervisor, recorded) is None:
                return recorded
            return known

        known: str | None = self._connection.call(f"name guest {uuid}", ask, again=True)
        if known is None and recorded:
            LOG.warning("Another guest has the name %s here: that of server %s gets the computed name", recorded, uuid)
        return known or instance.computed_name(self._name_template)

    def _hardware(self, spec: GuestSpec, volumes: list[GuestDisk]) -> GuestHardware:
        """What the guest is made of. Raises `GuestFailed` if its root disk or its rescue disk is missing."""
        instance = spec.instance
        wanted = guest_devices.devices_of(instance.flavor, instance.image_meta)
        # A volume that is no root disk may say its own bus.
        disks = [
            dataclasses.replace(each, bus=each.bus or (wanted.disk_bus if each.is_root else None)) for each in volumes
        ]
        if not any(disk.is_root for disk in volumes):
            if not self._disks.has(instance.uuid, ROOT_DISK):
                raise GuestFailed(f"Server {instance.uuid} has no root disk on this host.")
            target = Path(instance.root_device_name or "/dev/vda").name
            disks.insert(0, self._disk(instance.uuid, ROOT_DISK, target, wanted.disk_bus, is_root=True))
        for local in spec.local_disks:
            target = Path(local.device_name).name
            disks.append(self._disk(instance.uuid, local.name, target, local.disk_bus or wanted.disk_bus))
        asked = firmware.of_instance(instance)
        machine = self.machine_type(instance)
        if spec.rescue is not None:
            path = self._disks.rescue(instance.uuid)
            if not path.exists():
                raise GuestFailed(f"Server {instance.uuid} has no rescue disk on this host.")
            disks = rescue.arranged(disks, path, spec.rescue.image, cache=self._cache, machine=machine)
        return GuestHardware(
            uuid=instance.uuid,
            name=self._name_of(instance),
            title=instance.display_name,
            virt_type=self._virt_type,
            vcpus=instance.flavor.vcpus,
            memory_mb=instance.flavor.memory_mb,
            console_log=self._disks.console_log(instance.uuid),
            machine=machine,
            serial=instance.uuid if self._serial is Serial.UNIQUE else self._host_serial,
            processor=self._processor,
            uefi=self._uefi(instance, asked, machine),
            tpm=asked.tpm,
            tpm_secret=tpm_secrets.key_of(instance.system_metadata),
            devices=wanted,
            config_drive=self._disks.config_drive(instance.uuid),
            disks=disks,
            vifs=spec.vifs,
            numa_topology=instance.numa_topology,
            shared_cpus=self._shared_cpus,
            pci_devices=passed_through(instance),
            has_agent=quiescing.has_agent(instance),
            vnc_listen=self._consoles.vnc_listen,
            serial_listen=self._serial_listen(instance.uuid),
        )

    def _disk(self, uuid: str, name: str, target: str, bus: str | None, *, is_root: bool = False) -> GuestDisk:
        """A local disk of the guest."""
        return GuestDisk(
            target,
            self._disks.source(uuid, name),
            self._disks.disk_format(uuid, name),
            is_root=is_root,
            cache=self._cache,
            bus=bus,
        )

    def _take_kept(self, spec: GuestSpec) -> None:
        """Puts the state of firmware and TPM that came from another host in its place, if any came."""
        asked = firmware.of_instance(spec.instance)
        if spec.kept_state is not None:
            self._kept.take(spec, self._uefi(spec.instance, asked, self.machine_type(spec.instance)))

    def _uefi(self, instance: Instance, asked: firmware.Firmware, machine: str) -> Uefi | None:
        """The UEFI that the firmware asks for; None: BIOS. Raises `GuestFailed` if the host has none for the machine type."""
        if asked.type is not firmware.FirmwareType.UEFI:
            return None
        loader = uefi.choose(self._loaders, machine, asked.secure_boot)
        name = kept_state.nvram_of(asked, is_secure=loader.is_secure)
        return Uefi(loader, self._disks.folder(instance.uuid) / str(name))

    def _serial_listen(self, uuid: str) -> tuple[str, int] | None:
        address = self._consoles.serial
        return None if address is None else (address, self._serial_ports.port_for(uuid, address))
