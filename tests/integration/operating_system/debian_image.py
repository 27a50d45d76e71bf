"""Builds an image of Debian 12 as clouds have it: cloud kernel, GRUB for BIOS and UEFI, cloud-init, guest agent, SSH server.

All of it is of Debian's packages, as Debian configures them. Only root can build it, because packages are unpacked with their
owners. The disk has a GPT: GRUB for BIOS, the EFI system partition, and the root file system, which is last so that it can grow.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import tempfile
from pathlib import Path

from causeway.virt.libvirt.commands import run

_PACKAGES = (
    "linux-image-cloud-amd64 initramfs-tools zstd grub2-common grub-pc-bin grub-efi-amd64-bin "
    "systemd-sysv udev dbus procps kmod netbase iproute2 iputils-ping isc-dhcp-client sudo util-linux-extra "
    "cloud-init cloud-initramfs-growroot cloud-guest-utils qemu-guest-agent openssh-server"
)
_MIRROR, _SECURITY = "http://deb.debian.org/debian", "http://deb.debian.org/debian-security"
_SOURCES = (
    f"deb {_MIRROR} bookworm main",
    f"deb {_MIRROR} bookworm-updates main",
    f"deb {_SECURITY} bookworm-security main",
)
_UNWANTED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*")
_TOOLS = ("mmdebstrap", "sfdisk", "mformat", "mcopy", "mke2fs", "qemu-img")
# Not by label or UUID: a rescued server has two disks that come from this image.
_ROOT = "/dev/vda3"
_FILES = {
    "etc/fstab": f"{_ROOT} / ext4 errors=remount-ro 0 1\n",
    "etc/hostname": "debian\n",
    "etc/initramfs-tools/conf.d/compress": "COMPRESS=zstd\n",
    "boot/grub/grub.cfg": (
        "serial\nterminal_output serial\nset timeout=0\n"
        f"linux /vmlinuz root={_ROOT} ro console=tty0 console=ttyS0,115200 no_timer_check\n"
        "initrd /initrd.img\nboot\n"
    ),
    # To make other keys takes long where guests are emulated.
    "etc/cloud/cloud.cfg.d/90_image.cfg": "ssh_genkeytypes: [ed25519]\nlocale: C.UTF-8\n",
}
# MiB: each begins where the one before ends; the first begins at 1.
_BIOS_SIZE, _EFI_SIZE, _DISK_SIZE = 1, 16, 1024
_EFI_START, ROOT_START = 1 + _BIOS_SIZE, 1 + _BIOS_SIZE + _EFI_SIZE
_PARTITIONS = f"""label: gpt
start=1MiB, size={_BIOS_SIZE}MiB, type=21686148-6449-6E6F-744E-656564454649
start={_EFI_START}MiB, size={_EFI_SIZE}MiB, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B
start={ROOT_START}MiB, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4
"""
# What GRUB needs to read its configuration; it loads all else from the root file system.
_GRUB_MODULES = ("part_gpt", "ext2", "normal", "linux", "serial", "configfile")
_GRUB_OF = {"i386-pc": ("biosdisk",), "x86_64-efi": ()}
_SECTOR, _MIB = 512, 2**20


def missing() -> str | None:
    """Returns what this machine lacks to build the image; None if nothing."""
    lacks = [name for name in _TOOLS if shutil.which(name) is None]
    if lacks:
        return f"needs {', '.join(lacks)}: run scripts/install-packages.sh --os as root"
    return None if os.geteuid() == 0 else "needs root"


def build_debian_image(cache: Path) -> Path:
    """Returns the image, a qcow2, built if ``cache`` does not have this version of it: about two minutes, and 200 MB there."""
    version = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    image = cache / f"debian-{version}.qcow2"
    if image.exists():
        return image
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="build-") as name:
        work = Path(name)
        _install_debian(work / "root")
        disk = _disk(work)
        made = work / "made.qcow2"
        options = ("-O", "qcow2", "-c", "-o", "compression_type=zstd")
        run("qemu-img", "convert", "-f", "raw", *options, disk, made, timeout=300)
        made.replace(image)
    return image


def _install_debian(root: Path) -> None:
    """Debian in a folder, with GRUB's programs for both kinds of firmware in ``boot/grub``."""
    options = ["--mode=root", "--variant=minbase", "--quiet", f"--include={','.join(_PACKAGES.split())}"]
    options += ['--aptopt=Apt::Install-Recommends "false"', *(f"--dpkgopt=path-exclude={path}" for path in _UNWANTED)]
    run("mmdebstrap", *options, "bookworm", root, *_SOURCES, timeout=900)
    for path, text in _FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    # The journal of the boot before says how it ended.
    (root / "var/log/journal").mkdir(parents=True, exist_ok=True)
    run("chroot", root, "systemctl", "enable", "systemd-networkd")
    # Debian asks whoever installs it; this image is made by nobody.
    (root / "etc/machine-id").write_text("uninitialized\n")
    for kind, modules in _GRUB_OF.items():
        all_modules = root / "usr/lib/grub" / kind
        shutil.copytree(all_modules, root / "boot/grub" / kind, ignore=shutil.ignore_patterns("*.img", "*.module"))
        # On the disk from which it was loaded, whichever that is.
        options = [f"--format={kind}", "--prefix=(,gpt3)/boot/grub", f"--output=/boot/grub/{kind}/core"]
        run("chroot", root, "grub-mkimage", *options, *_GRUB_MODULES, *modules)


def _disk(work: Path) -> Path:
    disk, root = work / "disk.raw", work / "root"
    with disk.open("wb") as file:
        file.truncate(_DISK_SIZE * _MIB)
    run("sfdisk", "--quiet", disk, stdin=_PARTITIONS)
    efi = f"{disk}@@{_EFI_START}M"
    run("mformat", "-i", efi, "-T", str(_EFI_SIZE * _MIB // _SECTOR), "-h", "64", "-s", "32", "::")
    run("mmd", "-i", efi, "::/EFI", "::/EFI/BOOT")
    run("mcopy", "-i", efi, root / "boot/grub/x86_64-efi/core", "::/EFI/BOOT/BOOTX64.EFI")
    _install_for_bios(disk, root)
    # Behind it is the second copy of the table of partitions.
    size = _DISK_SIZE - ROOT_START - 1
    place = f"offset={ROOT_START * _MIB},lazy_itable_init=0"
    run("mke2fs", "-q", "-F", "-t", "ext4", "-E", place, "-d", root, disk, f"{size}M", timeout=300)
    return disk


def _install_for_bios(disk: Path, root: Path) -> None:
    """Writes GRUB as its own `grub-bios-setup` does, which would need the disk to be a device.

    The first sector loads the first sector of the BIOS partition; that one loads the rest, whose place is written at its end.
    """
    boot = bytearray((root / "usr/lib/grub/i386-pc/boot.img").read_bytes())
    core = bytearray((root / "boot/grub/i386-pc/core").read_bytes())
    start = _MIB // _SECTOR
    assert len(core) <= _BIOS_SIZE * _MIB, "GRUB is larger than its partition"
    boot[0x5C:0x64] = struct.pack("<Q", start)
    # "jmp" around a test of floppy disks becomes two "nop", as for any hard disk.
    boot[0x66:0x68] = b"\x90\x90"
    core[0x1F4:0x200] = struct.pack("<QHH", start + 1, -(-len(core) // _SECTOR) - 1, 0x820)
    with disk.open("r+b") as file:
        # Behind this is the table of partitions.
        file.write(boot[:440])
        file.seek(_MIB)
        file.write(core)
