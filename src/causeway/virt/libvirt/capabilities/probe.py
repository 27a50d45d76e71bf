"""Whether KVM really runs guests here.

On some machines (those that are guests themselves) /dev/kvm answers, libvirt advertises KVM and a guest's firmware runs, but its
kernel hangs or QEMU exits, because protected mode does not really work. So a small guest is started that enters protected mode,
returns from an interrupt there (which fails on such machines) and reports it. The answer is kept until the machine is booted
again or QEMU is replaced.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
import zlib
from contextlib import suppress
from pathlib import Path

import msgspec

from causeway import durable

_EMULATOR = "qemu-system-x86_64"
_WORKS, _BROKEN = b"CAUSEWAY-KVM-WORKS", b"KVM internal error"
# With a KVM that works, firmware and boot sector take half a second.
_PROBE_SECONDS = 10.0

# A boot sector: cli; ds = 0; lgdt; cr0 |= 1; jump to 32-bit code; ds = ss = 0x10; esp = 0x7000; push flags, 0x08 and the
# address after the next instruction; iretd; write the text to port 0x402; halt. The text, the descriptor table (code and
# data, flat) and its address follow.
_SECTOR = bytes.fromhex(
    "fa31c08ed80f0116707c0f20c00c010f22c0ea177c080066b810008ed88ed0bc007000009c6a08682d7c0000cfbe427c0000ba02040000"
    "ac84c07403eeebf8f4ebfd43415553455741592d4b564d2d574f524b530a006690"
    "0000000000000000ffff0000009bcf00ffff00000093cf001700587c"
)


def decide_virt_type(wanted: str, cache: Path) -> str:
    """``kvm`` or ``qemu``. ``wanted``: the same, or ``auto``. ``cache``: the file with the answer."""
    if wanted != "auto":
        return wanted
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "qemu"
    key = _key()
    # A torn file: the probe is made again.
    with suppress(durable.Torn):
        known = durable.read(cache, msgspec.json.Decoder(dict[str, str]).decode)
        if known is not None and known.get("key") == key and "virt_type" in known:
            return known["virt_type"]
    decided = "kvm" if guest_runs("kvm", "host") else "qemu"
    durable.write(cache, json.dumps({"key": key, "virt_type": decided}))
    return decided


def guest_runs(accelerator: str, processor: str) -> bool:
    """Whether a guest can do the first steps of a kernel within ten seconds."""
    options = ["-accel", accelerator, "-cpu", processor, "-m", "64", "-nodefaults", "-no-user-config"]
    options += ["-display", "none", "-chardev", "stdio,id=out", "-device", "isa-debugcon,iobase=0x402,chardev=out"]
    with tempfile.NamedTemporaryFile(prefix="causeway-probe-") as file:
        file.write(_SECTOR.ljust(510, b"\0") + b"\x55\xaa")
        file.flush()
        options += ["-drive", f"file={file.name},format=raw,if=ide"]
        try:
            process = subprocess.Popen(
                [_EMULATOR, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        except FileNotFoundError:
            return False
        with process:
            said = _read_until(process, (_WORKS, _BROKEN), time.monotonic() + _PROBE_SECONDS)
            process.kill()
    return _WORKS in said


def _read_until(process: subprocess.Popen[bytes], texts: tuple[bytes, ...], end: float) -> bytes:
    assert process.stdout is not None
    said = b""
    while not any(text in said for text in texts):
        left = end - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            break
        read = os.read(process.stdout.fileno(), 65536)
        if not read:
            break
        said += read
    return said


def _key() -> str:
    """A text that changes when the machine is booted, and when QEMU or this probe changes."""
    emulator = shutil.which(_EMULATOR)
    version = Path(emulator).stat().st_mtime_ns if emulator else 0
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {version} {zlib.crc32(_SECTOR)}"
