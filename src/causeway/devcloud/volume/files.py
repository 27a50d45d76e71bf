"""Volume and snapshot files: sparse, raw, of the volume's size."""

import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from causeway import durable
from causeway.devcloud.cloud import Cloud
from causeway.errors import ImageRefused
from causeway.model.image import QCOW2, RAW
from causeway.virt import image_formats

GIB = 1 << 30
COPY_TIMEOUT = 600.0
_ATTEMPTS = 5
# More than a header of LUKS takes.
_LUKS_BYTES = 4 << 20


def volume_path(cloud: Cloud, volume_id: str) -> Path:
    return (cloud.volumes_dir / f"volume-{volume_id}").absolute()


def snapshot_path(cloud: Cloud, snapshot_id: str) -> Path:
    return (cloud.volumes_dir / f"snapshot-{snapshot_id}").absolute()


def create_blank(path: Path, gib: int) -> None:
    with path.open("wb") as file:
        file.truncate(gib * GIB)
    _keep(path)


def extend(path: Path, gib: int) -> None:
    with path.open("r+b") as file:
        file.truncate(gib * GIB)
    _keep(path)


def take_over(path: Path, other: Path) -> None:
    """Puts the file ``other`` at ``path``. Processes that have it open still find it under its old name too."""
    replaced, link = other.resolve(), other.with_name(f"{other.name}.new")
    link.unlink(missing_ok=True)
    link.symlink_to(path.resolve())
    link.rename(other)
    if replaced != other:
        replaced.unlink(missing_ok=True)
    durable.sync(other.parent)


def remove(path: Path) -> None:
    target = path.resolve()
    path.unlink(missing_ok=True)
    target.unlink(missing_ok=True)


def copy(source: Path, target: Path, gib: int) -> None:
    """Copies a raw file with its holes, and resizes the copy. Raises OSError if that fails."""
    _run("cp", "--sparse=always", str(source), str(target))
    extend(target, gib)


def convert(source: Path, target: Path, disk_format: str, gib: int) -> None:
    """Writes an image as raw to a volume.

    Raises OSError if that fails, needs qemu-img and it is not installed, or if the image is not what its ``disk_format`` says, or
    larger than the volume.
    """
    try:
        found = image_formats.inspect(source, disk_format, "The image")
        image_formats.check_size("The image", found.virtual_size, gib * GIB)
    except ImageRefused as refused:
        raise OSError(refused.message) from refused
    if found.disk_format == RAW:
        copy(source, target, gib)
        return
    if shutil.which("qemu-img") is None:
        raise OSError(f"qemu-img is needed to turn a {disk_format} image into a volume, and is not installed")
    _run("qemu-img", "convert", "-f", QCOW2, "-O", RAW, str(source), str(target))
    extend(target, gib)


def encrypt(path: Path, passphrase: str, gib: int) -> None:
    """Turns a raw file into one that is LUKS inside, and of the same size: its content is some MiB shorter, as elsewhere.

    Raises OSError if it fails.
    """
    made = path.with_name(f"{path.name}.luks")
    with tempfile.NamedTemporaryFile("w", prefix="passphrase-") as file:
        file.write(passphrase)
        file.flush()
        options = f"driver=raw,file.driver=file,file.filename={path},size={gib * GIB - _LUKS_BYTES}"
        try:
            _run_again(
                *("qemu-img", "convert", "--object", f"secret,id=key,file={file.name}", "--image-opts", options),
                *("-O", "luks", "-o", "key-secret=key,iter-time=10", str(made)),
            )
            made.replace(path)
        finally:
            made.unlink(missing_ok=True)
    extend(path, gib)


def _keep(path: Path) -> None:
    """Syncs the file, its size and its name, so that they survive a power cut."""
    durable.sync(path)
    durable.sync(path.parent)


def _run_again(*command: str) -> None:
    """On a busy machine qemu-img now and then fails to measure how fast it is ("Unable to get accurate CPU usage")."""
    for _attempt in range(_ATTEMPTS - 1):
        with suppress(OSError):
            _run(*command)
            return
    _run(*command)


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COPY_TIMEOUT, check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{command[0]} did not end within {COPY_TIMEOUT:.0f} s") from error
    if done.returncode != 0:
        raise OSError(f"{command[0]} failed: {done.stderr.strip()}")
