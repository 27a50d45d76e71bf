"""Builds the small image `demo`: Debian's cloud kernel, busybox and the scripts beside this file.

It boots as any cloud image does (MBR, one ext4 partition, extlinux) and prints on its serial console what it sees; the
lines are described in `guest_init.sh`. The build needs neither root rights nor loop devices: the boot loader is installed
by a virtual machine that runs for some seconds.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from causeway.errors import GuestFailed
from causeway.virt.libvirt.commands import run

_MODULES = (
    "virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk failover net_failover virtio_net "
    "button evdev virtio_console scsi_common scsi_mod cdrom sr_mod libata ata_piix isofs"
)
_APPLETS = (
    "sh mount umount insmod nproc grep cat echo sleep poweroff sync mkdir date ls uname dd ip udhcpc hostname sed head tail "
    "tr chmod cp rm acpid tar printf ping wget nc ps sha256sum cut sort expr test [ true false kill touch wc fsfreeze fstrim"
)
_MBR = Path("/usr/lib/EXTLINUX/mbr.bin")
_SECTOR = 512
_PARTITION_START = 2048
_IMAGE_MIB = 128
# no_timer_check: on a busy machine an emulated timer fires too late for the kernel's check of it, and the boot hangs there.
_EXTLINUX_CONF = b"""DEFAULT linux
PROMPT 0
TIMEOUT 0
LABEL linux
 KERNEL /boot/vmlinuz
 INITRD /boot/initrd
 APPEND console=ttyS0 quiet panic=1 random.trust_cpu=on no_timer_check
"""


@dataclass
class GuestImage:
    """The image, and the kernel and initial RAM disk in it (for starting it without a boot loader)."""

    path: Path
    kernel: Path
    initrd: Path


@dataclass(frozen=True)
class Additions:
    """``files``: path without the leading slash -> content. All are executable; ``more`` starts when the root disk is mounted.

    ``modules``: kernel modules, in /lib, not loaded. ``applets``: of busybox, in /bin.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    modules: Sequence[str] = ()
    applets: Sequence[str] = ()


def build_guest_image(cache_dir: Path, more: Additions | None = None) -> GuestImage:
    """The image, built if ``cache_dir`` does not have this version of it. Takes seconds, and up to 200 MB there.

    ``more``: what this image has beside the usual. Raises `GuestFailed` if a Debian package can't be fetched or a tool is
    missing.
    """
    more = more or Additions()
    scripts = [files("causeway.virt.lab").joinpath(name).read_bytes() for name in ("guest_init.sh", "guest_install.sh")]
    added = [part for name, data in sorted(more.files.items()) for part in (name.encode(), data)]
    listed = " ".join((*more.modules, *more.applets)).encode()
    version = hashlib.sha256(b"".join([*scripts, Path(__file__).read_bytes(), *added, listed])).hexdigest()[:12]
    target = cache_dir / f"guest-{version}"
    image = GuestImage(target / "demo.qcow2", target / "vmlinuz", target / "initrd")
    if image.path.exists():
        return image
    cache_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_dir, prefix="build-") as name:
        work = Path(name)
        unpacked = _unpack_kernel(cache_dir, work / "kernel")
        _build(work, unpacked, more, *scripts)
        target.mkdir(exist_ok=True)
        for path in (image.kernel, image.initrd, image.path):
            (work / path.name).replace(path)
    return image


def _unpack_kernel(cache_dir: Path, target: Path) -> Path:
    packages = sorted(cache_dir.glob("linux-image-*-cloud-amd64_*.deb"))
    if not packages:
        try:
            _download_kernel(cache_dir)
        except GuestFailed:
            # There are no package lists, or old ones. Only root may fetch them.
            if os.geteuid() != 0:
                raise
            run("apt-get", "update", "-q", timeout=180)
            _download_kernel(cache_dir)
        packages = sorted(cache_dir.glob("linux-image-*-cloud-amd64_*.deb"))
    run("dpkg", "-x", packages[-1], target)
    return target


def _download_kernel(cache_dir: Path) -> None:
    found = re.search(r"Depends: (linux-image-\S+-cloud-amd64)", run("apt-cache", "depends", "linux-image-cloud-amd64"))
    if not found:
        raise GuestFailed("No kernel package linux-image-*-cloud-amd64 is known to apt; run 'apt-get update' first.")
    run("apt-get", "download", "-o", "APT::Sandbox::User=root", found[1], cwd=cache_dir, timeout=180)


def _build(work: Path, unpacked: Path, more: Additions, init: bytes, install: bytes) -> None:
    kernel = next((unpacked / "boot").glob("vmlinuz-*"))
    shutil.copy(kernel, work / "vmlinuz")
    contents: dict[str, bytes] = {"init": init, "bin/busybox": Path("/bin/busybox").read_bytes(), **more.files}
    for module in (*_MODULES.split(), *more.modules):
        for path in (unpacked / "lib/modules").rglob(f"{module}.ko"):
            contents[f"lib/{module}.ko"] = path.read_bytes()
    applets = {f"bin/{name}": "busybox" for name in (*_APPLETS.split(), *more.applets)}
    (work / "initrd").write_bytes(_compressed(_cpio(contents, applets)))
    extra = {"install": install, **_extlinux_files()}
    (work / "initrd.install").write_bytes((work / "initrd").read_bytes() + _compressed(_cpio(extra, {})))
    raw = _empty_disk(work)
    with tarfile.open(work / "boot.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in (
            ("boot/vmlinuz", (work / "vmlinuz").read_bytes()),
            ("boot/initrd", (work / "initrd").read_bytes()),
            ("boot/extlinux/extlinux.conf", _EXTLINUX_CONF),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    said = run(
        *("qemu-system-x86_64", "-accel", "tcg", "-m", "256", "-nodefaults", "-no-user-config", "-display", "none"),
        *("-serial", "stdio", "-no-reboot", "-kernel", str(work / "vmlinuz")),
        *("-initrd", str(work / "initrd.install"), "-append", "console=ttyS0 quiet panic=-1 no_timer_check"),
        *("-drive", f"file={raw},format=raw,if=virtio,cache=unsafe"),
        *("-drive", f"file={work / 'boot.tar'},format=raw,if=virtio,readonly=on"),
        timeout=120,
    )
    if "IMAGE-INSTALLED" not in said:
        raise GuestFailed("The guest image could not be made: its boot loader was not installed.", details=said[-2000:])
    options = ("-O", "qcow2", "-c", "-o", "compression_type=zstd")
    run("qemu-img", "convert", "-f", "raw", *options, raw, work / "demo.qcow2", timeout=120)


def _extlinux_files() -> dict[str, bytes]:
    """extlinux and the libraries that it is linked with, by their names without the leading slash."""
    paths = [Path(path) for path in re.findall(r"(/\S+) \(0x", run("ldd", "/usr/bin/extlinux"))]
    return {"bin/extlinux": Path("/usr/bin/extlinux").read_bytes()} | {
        str(path).lstrip("/"): path.resolve().read_bytes() for path in paths
    }


def _empty_disk(work: Path) -> Path:
    """A raw disk: boot code and one active Linux partition in its first sector, an empty ext4 file system in that."""
    partition, raw = work / "partition", work / "disk.raw"
    size = _IMAGE_MIB * 1024 * 1024 - _PARTITION_START * _SECTOR
    with partition.open("wb") as file:
        file.truncate(size)
    # extlinux reads neither 64-bit block numbers nor checksummed metadata
    run("mke2fs", "-q", "-F", "-t", "ext4", "-O", "^64bit,^metadata_csum", "-L", "causeway", partition)
    boot_code = _MBR.read_bytes()[:440]
    entry = struct.pack("<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", _PARTITION_START, size // _SECTOR)
    with raw.open("wb") as file:
        file.write(boot_code.ljust(446, b"\0") + entry + bytes(48) + b"\x55\xaa")
    run("dd", f"if={partition}", f"of={raw}", "bs=1M", "seek=1", "conv=notrunc,sparse", "status=none")
    with raw.open("r+b") as file:
        file.truncate(_IMAGE_MIB * 1024 * 1024)
    partition.unlink()
    return raw


def _cpio(contents: dict[str, bytes], links: dict[str, str]) -> bytes:
    """An archive in the kernel's initramfs format ("newc"); executable files, symbolic links and their directories."""
    directories = sorted({str(parent) for name in [*contents, *links] for parent in Path(name).parents} - {"."})
    if links:
        directories += ["dev", "proc", "sys"]
    entries = [(name, 0o040755, b"") for name in directories]
    entries += [(name, 0o100755, data) for name, data in contents.items()]
    entries += [(name, 0o120777, target.encode()) for name, target in links.items()]
    if links:
        # The kernel opens the console before /init can mount anything.
        entries.append(("dev/console", 0o020600, b""))
    entries.append(("TRAILER!!!", 0, b""))
    out = bytearray()
    for number, (name, mode, data) in enumerate(entries, 1):
        device = (5, 1) if name == "dev/console" else (0, 0)
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
        out += b"070701" + "".join(f"{value:08x}" for value in fields).encode() + name.encode() + b"\0"
        out += bytes(-len(out) % 4) + data
        out += bytes(-len(out) % 4)
    return bytes(out)


def _compressed(data: bytes) -> bytes:
    result = subprocess.run(["zstd", "-q", "-10", "-c"], input=data, capture_output=True, check=True, timeout=60)
    return result.stdout
