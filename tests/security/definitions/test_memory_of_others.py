"""A compromised host sends the memory of its guest, with a definition of its choice inside. Real guests, real libvirtd."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from causeway.errors import CausewayError
from causeway.virt.driver import ROOT_DISK, GuestSpec, RootDisk
from tests.integration.libvirt.lab_guests import Cloud, Guest
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


def saved_elsewhere(cloud: Cloud, tmp_path: Path) -> tuple[Guest, GuestSpec]:
    """A guest that was saved at the first host, as the second host receives it."""
    guest = cloud.guest()
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
    source.destroy(guest.uuid, guest.vifs, guest.volumes, destroy_disks=False)
    source.stash_disks(guest.uuid)
    spec = guest.spec(RootDisk(guest.base, "the-image", snapshot=disk, size_gb=1))
    spec.memory = received
    return guest, spec


def processes_of(guest: Guest) -> str:
    """The command lines of the QEMUs that run the guest."""
    return subprocess.run(["pgrep", "-af", f"uuid {guest.uuid}"], check=False, stdout=subprocess.PIPE, text=True).stdout
