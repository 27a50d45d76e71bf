"""A compromised host sends the memory of its guest, with a definition of its choice inside. Real guests, real libvirtd."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("libvirt")

from causeway.errors import CausewayError
from causeway.model.image import ImageMeta
from causeway.virt.driver import ROOT_DISK, GuestSpec, RootDisk
from causeway.virt.libvirt.live.live_source import MIGRATABLE
from tests.integration.libvirt.lab_guests import Cloud, Guest, Net
from tests.integration.libvirt.lab_journeys import TICKING
from tests.security.definitions.memory_files import MemoryFile

if TYPE_CHECKING:
    from causeway.virt.libvirt.driver import LibvirtDriver

pytestmark = [pytest.mark.libvirt, pytest.mark.timeout(240)]

_NAMESPACE = " xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>"


def _commandline(memory: MemoryFile, mark: Path) -> MemoryFile:
    arguments = f"<qemu:commandline><qemu:arg value='-pidfile'/><qemu:arg value='{mark}'/></qemu:commandline>"
    return memory.with_domain(">", _NAMESPACE).with_domain("</domain>", f"{arguments}</domain>")


def _device(xml: str) -> Callable[[MemoryFile, Path], MemoryFile]:
    return lambda memory, mark: memory.with_domain("</devices>", f"{xml.format(mark=mark)}</devices>")


def _emulator(memory: MemoryFile, mark: Path) -> MemoryFile:
    """A program instead of QEMU: libvirt runs it to learn what it can do, as soon as it reads the definition."""
    program = mark.with_name("program")
    program.write_text(f"#!/bin/sh\necho run > {mark}\n")
    program.chmod(0o755)
    _before, _, rest = memory.xml.partition("<emulator>")
    return memory.with_domain(f"<emulator>{rest.partition('<')[0]}", f"<emulator>{program}")


HOSTILE = {
    "arguments of QEMU": _commandline,
    "another emulator": _emulator,
    "a file of the host as a serial port": _device(
        "<parallel type='file'><source path='{mark}'/><target port='0'/></parallel>"
    ),
    "a channel into a file": _device(
        "<channel type='file'><source path='{mark}'/><target type='virtio' name='x'/></channel>"
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_a_foreign_definition_asks_for_is_not_done(cloud: Cloud, tmp_path: Path, case: str) -> None:
    guest, spec = saved_elsewhere(cloud, tmp_path)
    mark, target = tmp_path / "mark", cloud.drivers[1]
    assert spec.memory is not None
    HOSTILE[case](MemoryFile.read(spec.memory), mark).write(spec.memory)
    try:
        target.wake(spec)
    except CausewayError as refusal:
        assert refusal.code == "guest_refused", refusal.details
    assert not mark.exists()
    assert str(mark) not in processes_of(guest)


def saved_elsewhere(cloud: Cloud, tmp_path: Path, guest: Guest | None = None) -> tuple[Guest, GuestSpec]:
    """A guest that was saved at the first host, as the second host receives it."""
    guest = guest or cloud.guest()
    guest.config_drive = TICKING
    guest.spawn()
    source: LibvirtDriver = cloud.drivers[0]
    source.save_memory(guest.uuid)
    memory = source.saved_memory(guest.uuid)
    assert memory is not None
    received = tmp_path / "received"
    received.write_bytes(memory.read_bytes())
    with source.export_disk(guest.instance, ROOT_DISK, flatten=False) as export:
        disk = tmp_path / "disk"
        disk.write_bytes(export.path.read_bytes())
    with source.export_kept_state(guest.instance) as export:
        state = tmp_path / "state"
        state.write_bytes(export.path.read_bytes())
    source.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=False)
    source.stash_disks(guest.uuid)
    spec = guest.spec(RootDisk(guest.base, "the-image", snapshot=disk, size_gb=1))
    spec.memory, spec.kept_state = received, state
    return guest, spec


def processes_of(guest: Guest) -> str:
    """The command lines of the QEMUs that run the guest."""
    return subprocess.run(["pgrep", "-af", f"uuid {guest.uuid}"], check=False, stdout=subprocess.PIPE, text=True).stdout


def test_a_guest_with_everything_continues_with_this_hosts_definition(
    cloud: Cloud, network: Net, tmp_path: Path
) -> None:
    """TPM, USB, a watchdog, an agent's channel, a volume, a config drive, consoles: devices and CPU stay as they were."""
    guest = cloud.guest(vifs=[network.port()], memory_mb=256)
    properties = {
        "hw_tpm_model": "tpm-crb",
        "hw_tpm_version": "2.0",
        "hw_input_bus": "usb",
        "hw_watchdog_action": "reset",
    }
    properties |= {"hw_qemu_guest_agent": "yes", "hw_vif_model": "e1000", "hw_video_model": "cirrus"}
    guest.instance.image_meta = ImageMeta("image", properties=properties)
    guest.volumes.append(cloud.volume(guest))
    guest, spec = saved_elsewhere(cloud, tmp_path, guest)
    target = cloud.drivers[1]
    assert spec.memory is not None
    before = ET.fromstring(MemoryFile.read(spec.memory).xml)
    target.wake(spec)
    guest.driver = target
    target.resume_woken(guest.uuid, is_paused=False)
    last = guest.console().text.count("TICK")
    guest.wait(lambda said: said.text.count("TICK") > last + 1)
    assert guest.console().boots == 0
    running = ET.fromstring(
        target._connection.call(
            "describe a guest", lambda hypervisor: hypervisor.lookupByUUIDString(guest.uuid).XMLDesc(MIGRATABLE)
        )
    )

    def seen(domain: ET.Element) -> list[str]:
        """What the guest sees of its devices."""
        kept = ("address", "model", "serial", "mtu", "target")
        return sorted(
            f"{device.tag} {child.tag} {sorted(child.attrib.items())} {child.text}"
            for device in domain.iterfind("devices/*")
            for child in device
            if child.tag in kept and (device.tag, child.tag) != ("interface", "target")
        )

    assert seen(running) == seen(before)
    assert ET.tostring(running.find("cpu")) == ET.tostring(before.find("cpu"))  # type: ignore[arg-type]
