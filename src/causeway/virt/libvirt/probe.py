"""Whether KVM really runs guests here.

On some machines (those that are guests themselves) /dev/kvm answers and libvirt advertises KVM, but guests hang or QEMU
aborts. So a guest without a disk is started: with a KVM that works its firmware says within a second that there is nothing
to boot from. The answer is kept until the machine is booted again or QEMU is replaced.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

_EMULATOR = "qemu-system-x86_64"
_FIRMWARE_DONE = b"No bootable device"
_PROBE_SECONDS = 4.0


def decide_virt_type(wanted: str, cache: Path) -> str:
    """``kvm`` or ``qemu``; ``wanted`` may be ``auto``."""
    if wanted != "auto":
        return wanted
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "qemu"
    key = _key()
    if cache.exists():
        known: dict[str, str] = json.loads(cache.read_text())
        if known.get("key") == key:
            return known["virt_type"]
    decided = "kvm" if _boots_with_kvm() else "qemu"
    partial = cache.with_name(f"{cache.name}.{os.getpid()}")
    partial.write_text(json.dumps({"key": key, "virt_type": decided}))
    partial.replace(cache)
    return decided


def _key() -> str:
    emulator = shutil.which(_EMULATOR)
    version = Path(emulator).stat().st_mtime_ns if emulator else 0
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {version}"


def _boots_with_kvm() -> bool:
    options = ["-accel", "kvm", "-cpu", "host", "-m", "64", "-nodefaults", "-no-user-config", "-display", "none"]
    options += ["-chardev", "stdio,id=firmware", "-device", "isa-debugcon,iobase=0x402,chardev=firmware"]
    try:
        process = subprocess.Popen(
            [_EMULATOR, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except FileNotFoundError:
        return False
    said, end = b"", time.monotonic() + _PROBE_SECONDS
    with process:
        assert process.stdout is not None
        while _FIRMWARE_DONE not in said and (left := end - time.monotonic()) > 0:
            if not select.select([process.stdout], [], [], left)[0]:
                break
            read = os.read(process.stdout.fileno(), 65536)
            if not read:
                break
            said += read
        process.kill()
    return _FIRMWARE_DONE in said
