"""Runs qemu-img, and nothing else in the libvirt driver does.

**Every file's format is named.** A program that guesses it from the content does what the content wants, and the content is a
guest's or a user's: some formats name other files of the host. So no function here works without formats, and a test reads the
source for other calls (``tests/security/images``).

**Every call is limited** in processor time, memory, and the size of the files that it writes: qcow2 tables may come from another
host. A file that came from one is changed by an account without rights, which can open nothing else (`settle_foreign`).
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causeway.errors import GuestFailed
from causeway.model.image import QCOW2, RAW
from causeway.virt.driver import BaseImage
from causeway.virt.libvirt.commands import run
from causeway.virt.libvirt.guest_xml.rbd_source import MONITOR_PORT, PROTOCOL, RbdSource

_MIB = 2**20
# Seconds of a processor for what reads and writes tables only, and bytes of memory; copies of whole disks have caches.
_CPU_SECONDS, _MEMORY = 30, 2 << 30
_CLUSTER, _COUNT_BYTES = 64 << 10, 8
# Bytes that a file may grow by, for tables.
_TABLES = 256 * _MIB
_TIMEOUT = 30.0
# Eight requests at a time, in any order: three times as fast. Not compressed, because the guest would read it compressed later.
_THREADS = 8
_FAST = ("-W", "-m", str(_THREADS))
# The exit codes of `qemu-img check` for a sound image, and for one that only occupies more space than it needs.
_SOUND, _LEAKS = 0, 3
_WITHOUT_RIGHTS = "nobody"
_ALONE = ".alone-"


@dataclass(frozen=True)
class Layer:
    """A file below another one."""

    path: Path
    disk_format: str


def info(path: Path) -> dict[str, Any]:
    """What is in the header of a qcow2 file. Opens no file below it. Raises `GuestFailed` if it can't be read."""
    found: dict[str, Any] = json.loads(_run(0, "info", "-U", "--output=json", "-f", QCOW2, path))
    return found


def virtual_size(path: Path) -> int:
    return int(info(path)["virtual-size"])


def layer_below(path: Path) -> Layer | None:
    """The file that a qcow2 file stands on, as its header says; None: it stands alone.

    Raises `GuestFailed` if the header does not say that the file below is raw or qcow2. A program would guess then, or do what an
    image that release 0.1.0 let in says.
    """
    return layer_in(info(path), path)


def layer_in(header: dict[str, Any], path: Path) -> Layer | None:
    """The same, of a header that was read (`info`)."""
    below, its_format = header.get("full-backing-filename"), header.get("backing-filename-format")
    if below is None:
        return None
    if its_format not in (RAW, QCOW2):
        raise GuestFailed(
            "A disk of the server stands on a file that is not known to be raw or qcow2. It is not opened.",
            details=f"{path} stands on {below} (format {its_format or 'not recorded'})",
        )
    return Layer(Path(below), str(its_format))


def create(path: Path, size: int, below: Layer | BaseImage | None = None) -> None:
    """Makes a qcow2 disk of ``size`` bytes, empty or on another file, which is not opened."""
    unopened = () if below is None else ("-u",)
    _run(_TABLES, "create", "-q", *unopened, "-f", QCOW2, *_backing(below), path, str(size))


def copy(disk: Path, target: Path, without: Layer | None, timeout: float) -> None:
    """Copies a qcow2 disk with all that is in it, or without what the layer below it (``without``) has.

    The copy names no other file. ``timeout``: seconds.
    """
    known = () if without is None else ("-F", without.disk_format, "-B", without.path)
    command = ("convert", "-q", "-U", *_FAST, "-f", QCOW2, "-O", QCOW2, *known, disk, target)
    _run(_most_of(virtual_size(disk)), *command, timeout=timeout)
    if without is not None:
        name_below(target, None)


def from_raw(raw: Path, target: Path, timeout: float = _TIMEOUT) -> None:
    """Makes a qcow2 disk from a raw file. ``timeout``: seconds."""
    _run(_most_of(raw.stat().st_size), "convert", "-q", "-f", RAW, "-O", QCOW2, raw, target, timeout=timeout)


def to_raw(image: BaseImage, target: Path, timeout: float) -> None:
    """Writes what guests see of an image into a raw file, with holes. ``timeout``: seconds."""
    words = ("convert", "-q", *_FAST, "-f", image.disk_format, "-O", RAW, image.path, target)
    _run(_most_of(image.virtual_size), *words, timeout=timeout)


def overwrite(path: Path, target: Path, timeout: float) -> None:
    """Replaces the content of a qcow2 disk, which is not smaller, by that of another one. ``timeout``: seconds."""
    words = ("convert", "-q", *_FAST, "-n", "-f", QCOW2, "-O", QCOW2, path, target)
    _run(_as_is(target) + _most_of(virtual_size(target)), *words, timeout=timeout)


def make_snapshot(path: Path, label: str) -> None:
    """Keeps the content and the size of a qcow2 disk inside of its file."""
    _snapshot(path, "-c", label)


def roll_back(path: Path, label: str) -> None:
    """Gives a qcow2 disk the content and the size that it had. The snapshot stays."""
    _snapshot(path, "-a", label)


def delete_snapshot(path: Path, label: str, timeout: float) -> None:
    """Deletes what a qcow2 file keeps of its disk. ``timeout``: seconds."""
    _snapshot(path, "-d", label, timeout)


def to_network(path: Path, disk_format: str, url: str, timeout: float, *, is_blank: bool = True) -> None:
    """Writes a file as raw blocks into an image that QEMU reaches by ``url``, and that is not smaller. ``timeout``: seconds.

    ``is_blank``: the image has only zeros.
    """
    blank = ("--target-is-zero",) if is_blank else ()
    command = ("convert", "-q", *_FAST, "-n", *blank, "-f", disk_format, "-O", RAW, path, url)
    _run(_TABLES, *command, timeout=timeout)


def from_network(url: str, target: Path, size: int, timeout: float) -> None:
    """Makes a qcow2 disk from raw blocks that QEMU reaches by ``url``. ``timeout``: seconds."""
    _run(_most_of(size), "convert", "-q", *_FAST, "-f", RAW, "-O", QCOW2, url, target, timeout=timeout)


def name_below(path: Path, below: Layer | BaseImage | None) -> None:
    """Writes into a qcow2 file what it stands on (None: nothing). Opens nothing but this file, and changes no content."""
    _run(_as_is(path), "rebase", "-q", "-u", "-f", QCOW2, *(_backing(below) or ("-b", "")), path)


def pull(path: Path, below: tuple[str, str] | None, timeout: float) -> None:
    """Copies what is between a qcow2 file and the one below it that has this (name, format) into it; None: all that is below.

    Opens the files below as their headers say, so the caller has checked these (`layer_below`). ``timeout``: seconds.
    """
    backing = ("-b", "") if below is None else ("-F", below[1], "-b", below[0])
    _run(_most_of(virtual_size(path)), "rebase", "-f", QCOW2, *backing, path, timeout=timeout)


def grow(path: Path, size: int) -> None:
    """Makes a disk larger, to ``size`` bytes. A disk that is as large or larger stays."""
    if size > virtual_size(path):
        _run(_as_is(path), "resize", "-q", "-f", QCOW2, path, str(size))


def settle_foreign(path: Path, below: BaseImage | None, size: int) -> None:
    """`grow` and `name_below` for a file that came from another host. May be repeated.

    If this process may, it has the work done by an account that can open nothing but this file.
    """
    with _alone(path) as (folder, program):
        name = f"./{path.name}"

        def change(*words: str | Path) -> str:
            return _run(_as_is(path), *words, program=program, cwd=folder)

        # Where it stands on nothing, nothing else is opened.
        change("rebase", "-q", "-u", "-f", QCOW2, "-b", "", name)
        found = json.loads(change("info", "--output=json", "-f", QCOW2, name))
        if size > int(found["virtual-size"]):
            change("resize", "-q", "-f", QCOW2, name, str(size))
        if below is not None:
            change("rebase", "-q", "-u", "-f", QCOW2, *_backing(below), name)


def check(path: Path, timeout: float) -> None:
    """Raises `GuestFailed` if the tables of a qcow2 file are damaged. ``timeout``: seconds."""
    # It counts the references to each cluster.
    counts = path.stat().st_size // _CLUSTER * _COUNT_BYTES
    _run(0, "check", "-q", "-U", "-f", QCOW2, path, timeout=timeout, accept=(_SOUND, _LEAKS), memory=_MEMORY + counts)


def require_ceph() -> None:
    """Raises `GuestFailed` if QEMU can't open images in Ceph."""
    try:
        # There is no such file: the driver says so, if there is one.
        options = {"driver": PROTOCOL, "pool": "none", "image": "none", "conf": "/nonexistent"}
        _run(0, "info", "-f", PROTOCOL, f"json:{json.dumps(options)}")
    except GuestFailed as failure:
        _require_ceph(failure)


def _require_ceph(failure: GuestFailed) -> None:
    if "Unknown driver" in failure.details:
        raise GuestFailed(
            "The host's QEMU has no driver for volumes in Ceph: install qemu-block-extra (or qemu-kvm-block-rbd).",
            details=failure.details,
        ) from failure


def size_in_ceph(source: RbdSource, key: str | None, timeout: float) -> int:
    """The size in bytes of an image in Ceph, which is opened for reading as a guest would open it. ``timeout``: seconds.

    ``key``: of its account; None: it has none. Raises `GuestFailed`.
    """
    pool, image = source.image.split("/")
    options: dict[str, Any] = {"driver": PROTOCOL, "pool": pool, "image": image}
    if source.access.monitors:
        # QEMU wants a port.
        options["server"] = [
            {"host": each.address, "port": each.port or MONITOR_PORT} for each in source.access.monitors
        ]
    secret: tuple[str, ...] = ()
    # In no file, and not among the words of the command.
    handle = os.memfd_create("key")
    try:
        if key is not None:
            os.write(handle, key.encode())
            secret = ("--object", f"secret,id=key,format=base64,file=/proc/self/fd/{handle}")
            options |= {"user": source.access.user, "key-secret": "key"}
        words = ("info", *secret, "--output=json", "-f", PROTOCOL, f"json:{json.dumps(options)}")
        return int(json.loads(_run(0, *words, timeout=timeout, pass_fds=(handle,)))["virtual-size"])
    except GuestFailed as failure:
        _require_ceph(failure)
        if "did not end" in failure.message:
            raise GuestFailed(
                f"Ceph did not open image {source.image} within {timeout:.0f} s, as when it can't be reached or a key is wrong.",
                details=str(source.access),
            ) from failure
        raise GuestFailed(f"Image {source.image} in Ceph can't be opened.", details=failure.details) from failure
    finally:
        os.close(handle)


def remove_bitmap(path: Path, name: str) -> None:
    _run(_as_is(path), "bitmap", "--remove", "-f", QCOW2, path, name)


def _snapshot(path: Path, act: str, label: str, timeout: float = _TIMEOUT) -> None:
    # This command has no other way to name the format.
    options = f"driver={QCOW2},file.driver=file,file.filename={str(path).replace(',', ',,')}"
    _run(_as_is(path), "snapshot", "-q", act, label, "--image-opts", options, timeout=timeout)


def _backing(below: Layer | BaseImage | None) -> tuple[str | Path, ...]:
    return () if below is None else ("-F", below.disk_format, "-b", below.path)


def _as_is(path: Path) -> int:
    """The most bytes of a file in which only tables change."""
    return path.stat().st_size + _TABLES


def _most_of(virtual_size: int) -> int:
    """The most bytes of a file with a disk of this size."""
    return virtual_size + virtual_size // 100 + _TABLES


@contextmanager
def _alone(path: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """A folder with nothing but the file, and the words before a command that takes all rights but those to this folder.

    The file keeps its place, and is ours again afterwards. If this process is not root, the words are none.
    """
    for stale in path.parent.glob(f"{_ALONE}*"):
        # Of a process that was killed.
        shutil.rmtree(stale, ignore_errors=True)
    account = _account_without_rights()
    if account is None:
        yield path.parent, ()
        return
    folder = Path(tempfile.mkdtemp(prefix=_ALONE, dir=path.parent))
    inside = folder / path.name
    try:
        inside.hardlink_to(path)
        for each in (folder, inside):
            os.chown(each, account.pw_uid, account.pw_gid)
        ids = (f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}")
        yield folder, ("setpriv", *ids, "--clear-groups", "--no-new-privs")
    finally:
        os.chown(path, os.geteuid(), os.getegid())
        shutil.rmtree(folder, ignore_errors=True)


def _account_without_rights() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(_WITHOUT_RIGHTS)
    except KeyError:
        return None


def _run(
    most: int,
    *words: str | Path,
    timeout: float = _TIMEOUT,
    accept: tuple[int, ...] = (0,),
    program: tuple[str, ...] = (),
    cwd: Path | None = None,
    memory: int = _MEMORY,
    pass_fds: tuple[int, ...] = (),
) -> str:
    """Runs qemu-img. ``most``: bytes of the largest file that it may write. ``timeout``: seconds."""
    seconds = _CPU_SECONDS if timeout == _TIMEOUT else int(timeout) * _THREADS
    limits = (f"--as={memory}", f"--cpu={seconds}", f"--fsize={most}", "--core=0")
    command = (*program, "prlimit", *limits, "qemu-img", *words)
    return run(*command, timeout=timeout, accept=accept, cwd=cwd, name="qemu-img", pass_fds=pass_fds)
