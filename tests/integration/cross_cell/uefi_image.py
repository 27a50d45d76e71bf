"""Builds an image that boots only by UEFI: the demonstration's kernel and initial RAM disk, as one program of the firmware.

The guest says at each boot which variable of its own the firmware has kept; at its first boot it writes one::

    CAUSEWAY-UEFI boot=N variable=TEXT
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

from causeway.virt.lab.guest_image import Additions, build_guest_image
from causeway.virt.libvirt.commands import run

_STUB = Path("/usr/lib/systemd/boot/efi/linuxx64.efi.stub")
_COMMAND_LINE = b"console=ttyS0 quiet panic=1 random.trust_cpu=on no_timer_check"
# Where the sections of the program are in memory, as systemd-stub(7) has them.
_SECTIONS = {".cmdline": 0x30000, ".linux": 0x2000000, ".initrd": 0x3000000}
# A variable has four bytes of attributes first: it is kept, and both boot services and the operating system may read it.
_KEEPS_VARIABLE = b"""#!/bin/sh
insmod /lib/efivarfs.ko
mount -t efivarfs efivarfs /sys/firmware/efi/efivars || exit
variable=/sys/firmware/efi/efivars/Causeway-7d1c3c2e-51a5-4bc5-9b0e-0a9d7c4b9f11
[ -f $variable ] || printf '\\007\\000\\000\\000%s' "$(cat /proc/sys/kernel/random/uuid)" > $variable
echo "CAUSEWAY-UEFI boot=$(grep -c '^boot ' /disk/marker) variable=$(tail -c +5 $variable)" > /dev/console
"""
_SECTOR, _MIB = 512, 2**20
# MiB: the guest looks for its file system in the first partition; the firmware for its programs in one of its own type.
_LINUX_START, _LINUX_SIZE, _EFI_SIZE = 1, 31, 64


def missing() -> str | None:
    """Returns what this machine lacks to build the image; None if nothing."""
    lacks = [name for name in ("objcopy", "mformat", "mcopy") if shutil.which(name) is None]
    lacks += [] if _STUB.exists() else [str(_STUB)]
    return f"needs {', '.join(lacks)}: run scripts/install-packages.sh as root" if lacks else None


def build_uefi_image(cache: Path, work: Path) -> Path:
    """Returns a raw image in ``work``. ``cache``: of kernels, see `build_guest_image`."""
    demo = build_guest_image(cache, Additions(files={"more": _KEEPS_VARIABLE}, modules=("efivarfs",)))
    line = work / "cmdline"
    line.write_bytes(_COMMAND_LINE)
    sections = {".cmdline": line, ".linux": demo.kernel, ".initrd": demo.initrd}
    options = [f"--add-section={name}={path}" for name, path in sections.items()]
    options += [f"--change-section-vma={name}={address:#x}" for name, address in _SECTIONS.items()]
    program = work / "BOOTX64.EFI"
    run("objcopy", *options, _STUB, program)
    return _disk(work, program)


def _disk(work: Path, program: Path) -> Path:
    disk, linux = work / "uefi.raw", work / "linux"
    efi_start = _LINUX_START + _LINUX_SIZE
    places = ((0x83, _LINUX_START, _LINUX_SIZE), (0xEF, efi_start, _EFI_SIZE))
    entries = [
        struct.pack(
            "<B3sB3sII", 0, b"\xfe\xff\xff", kind, b"\xfe\xff\xff", start * _MIB // _SECTOR, size * _MIB // _SECTOR
        )
        for kind, start, size in places
    ]
    with disk.open("wb") as file:
        file.write(bytes(446) + b"".join(entries).ljust(64, b"\0") + b"\x55\xaa")
        file.truncate((efi_start + _EFI_SIZE) * _MIB)
    with linux.open("wb") as file:
        file.truncate(_LINUX_SIZE * _MIB)
    run("mke2fs", "-q", "-F", "-t", "ext4", linux)
    run("dd", f"if={linux}", f"of={disk}", "bs=1M", f"seek={_LINUX_START}", "conv=notrunc,sparse", "status=none")
    partition = f"{disk}@@{efi_start}M"
    run("mformat", "-i", partition, "-T", str(_EFI_SIZE * _MIB // _SECTOR), "-h", "64", "-s", "32", "::")
    run("mmd", "-i", partition, "::/EFI", "::/EFI/BOOT")
    run("mcopy", "-i", partition, program, f"::/EFI/BOOT/{program.name}")
    return disk
