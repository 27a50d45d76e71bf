"""Volumes that are LUKS, as block storage makes them."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from causeway.devcloud.volume import files
from causeway.model.block_device import BlockDevice
from causeway.model.volume_keys import Passphrase
from tests.integration.libvirt.lab_guests import Cloud, Guest, image_lines

#: 256 bits, in hexadecimal digits
KEY = Passphrase("luks", "5e" * 32)
MAGIC = b"LUKS\xba\xbe\x00\x01"


def luks_volume(cloud: Cloud, guest: Guest, disk_format: str = "raw") -> BlockDevice:
    """``disk_format``: qcow2 is encrypted inside, as Cinder's NFS driver makes it."""
    volume = cloud.volume(guest)
    path = cloud.path_of(volume)
    # What nobody wrote decrypts to noise, which the guest would take for its lines.
    zeros = path.with_name(f"{path.name}.zeros")
    path.rename(zeros)
    with tempfile.NamedTemporaryFile("w") as key:
        key.write(KEY.text)
        key.flush()
        options = {"raw": "key-secret=k", "qcow2": "encrypt.format=luks,encrypt.key-secret=k"}[disk_format]
        files._run_again(
            *("qemu-img", "convert", "--object", f"secret,id=k,file={key.name}", "-f", "raw"),
            *("-O", "luks" if disk_format == "raw" else "qcow2", "-o", options, str(zeros), str(path)),
        )
    zeros.unlink()
    assert volume.connection_info is not None
    volume.connection_info["data"] |= {"encrypted": True, "format": disk_format}
    return volume


def plain_lines(path: Path, passphrase: str, disk_format: str = "raw") -> list[str]:
    """The lines that a guest wrote, read with the key, beside a guest that may run."""
    with tempfile.TemporaryDirectory() as folder:
        key, plain = Path(folder, "key"), Path(folder, "plain")
        key.write_text(passphrase)
        if disk_format == "raw":
            opened = f"driver=luks,key-secret=k,file.driver=file,file.filename={path}"
        else:
            opened = f"driver=qcow2,encrypt.key-secret=k,file.driver=file,file.filename={path}"
        subprocess.run(
            [
                "qemu-img",
                "convert",
                "-U",
                "--object",
                f"secret,id=k,file={key}",
                "--image-opts",
                opened,
                "-O",
                "raw",
                plain,
            ],
            check=True,
            timeout=120,
        )
        return image_lines(plain)


def command_lines() -> str:
    """Of all processes of this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)
