"""RBD through the programs ``rbd`` and ``ceph``, for hosts whose Python has no bindings. A call takes 0.1 s or more."""

from __future__ import annotations

import errno
import json
import subprocess
from typing import Any

from causeway.virt.libvirt.storage.extents import joined
from causeway.virt.libvirt.storage.rbd.bindings import monitors_in, usage_in
from causeway.virt.libvirt.storage.rbd.protocol import Access, Beginning, Image, Parent, Refused, Usage

_FEATURES = "layering,exclusive-lock,object-map,fast-diff,deep-flatten"
_DAY = 24 * 3600.0


class ProgramPool:
    """A pool, reached by programs. Raises `Refused`: they end with the errno of what failed."""

    by = "programs"

    def __init__(self, access: Access) -> None:
        self._pool = access.pool
        self._options = (
            *("--conf", access.conf, "--id", access.user),
            *("--client-mount-timeout", str(access.connect_timeout)),
            *("--rados-mon-op-timeout", str(access.connect_timeout)),
            *("--rados-osd-op-timeout", str(access.request_timeout)),
        )
        self._seconds = access.connect_timeout + access.request_timeout
        self.fsid = self._run("ceph", "fsid").decode().strip()
        self.names()

    def names(self) -> list[str]:
        return [str(each) for each in self._json("ls", self._pool)]

    def describe(self, name: str) -> Image:
        image = f"{self._pool}/{name}"
        info, status = self._json("info", image), self._json("status", image)
        snapshots = self._json("snap", "ls", "--all", image)
        namespaces = [each.get("namespace", {}).get("type", "user") for each in snapshots]
        parent = info.get("parent")
        return Image(
            id=str(info["id"]),
            size=int(info["size"]),
            metadata={str(key): str(value) for key, value in self._json("image-meta", "ls", image).items()},
            snapshots=[str(each["name"]) for each, kind in zip(snapshots, namespaces, strict=True) if kind == "user"],
            kept=namespaces.count("trash"),
            watchers=[str(each["address"]) for each in status.get("watchers", ())],
            parent=None if not parent else Parent(parent["pool"], parent["image"], parent["snapshot"]),
        )

    def read(self, image: Parent, most: int) -> Beginning:
        name = f"{image.pool}/{image.image}@{image.snapshot}"
        size = int(self._json("info", name)["size"])
        return Beginning(size, self._first(min(size, most), "export", "--no-progress", name, "-"))

    def changes(self, name: str, since: str | None, until: str | None) -> list[tuple[int, int]]:
        image = f"{self._pool}/{name}" + (f"@{until}" if until is not None else "")
        begin = ("--from-snap", since) if since is not None else ()
        size = int(self._json("info", image)["size"])
        found = self._run("rbd", "diff", *begin, image, "--format", "json", seconds=_DAY)
        return joined(((int(each["offset"]), int(each["length"])) for each in json.loads(found)), size)

    def set_metadata(self, name: str, key: str, value: str) -> None:
        self._rbd("image-meta", "set", f"{self._pool}/{name}", key, value)

    def make_snapshot(self, name: str, snapshot: str, *, protected: bool) -> None:
        image = f"{self._pool}/{name}@{snapshot}"
        try:
            self._rbd("snap", "create", "--no-progress", image)
        except Refused as refused:
            if not protected or refused.number != errno.EEXIST:
                raise
        if protected:
            try:
                self._rbd("snap", "protect", image)
            except Refused as refused:
                if refused.number != errno.EBUSY:
                    raise

    def delete_snapshot(self, name: str, snapshot: str) -> None:
        image = f"{self._pool}/{name}@{snapshot}"
        try:
            self._rbd("snap", "rm", "--no-progress", image)
        except Refused as refused:
            if refused.number != errno.EBUSY:
                raise
            self._rbd("snap", "unprotect", image)
            self._rbd("snap", "rm", "--no-progress", image)

    def roll_back(self, name: str, snapshot: str) -> None:
        self._rbd("snap", "rollback", "--no-progress", f"{self._pool}/{name}@{snapshot}", seconds=_DAY)

    def rename(self, name: str, to: str) -> None:
        self._rbd("rename", f"{self._pool}/{name}", f"{self._pool}/{to}")

    def remove(self, name: str) -> None:
        self._rbd("rm", "--no-progress", f"{self._pool}/{name}", seconds=_DAY)

    def move_to_trash(self, name: str) -> None:
        self._rbd("trash", "mv", f"{self._pool}/{name}")

    def create(self, name: str, size: int) -> None:
        self._rbd("create", "--size", f"{size}B", "--image-feature", _FEATURES, f"{self._pool}/{name}")

    def clone(self, parent: Parent, name: str) -> None:
        above = f"{parent.pool}/{parent.image}@{parent.snapshot}"
        self._rbd("clone", "--image-feature", _FEATURES, above, f"{self._pool}/{name}")

    def grow(self, name: str, size: int) -> None:
        image = f"{self._pool}/{name}"
        # Without --allow-shrink it makes nothing smaller, whatever has happened since.
        if int(self._json("info", image)["size"]) < size:
            self._rbd("resize", "--no-progress", "--size", f"{size}B", image)

    def flatten(self, name: str) -> None:
        self._rbd("flatten", "--no-progress", f"{self._pool}/{name}", seconds=_DAY)

    def blocklist(self, addresses: list[str], seconds: float) -> None:
        # Every program that starts later has the map of then.
        for address in addresses:
            self._run("ceph", "osd", "blocklist", "add", address, str(seconds))

    def use(self) -> Usage:
        return usage_in(self._run("ceph", "df", "--format", "json"), self._pool)

    def monitors(self) -> list[str]:
        return monitors_in(self._run("ceph", "mon", "dump", "--format", "json"))

    def _json(self, *words: str) -> Any:
        # Of an image without metadata it says nothing.
        return json.loads(self._rbd(*words, "--format", "json").strip() or b"{}")

    def _rbd(self, *words: str, seconds: float | None = None) -> bytes:
        return self._run("rbd", *words, seconds=seconds)

    def _first(self, count: int, *words: str) -> bytes:
        """What the program says first. It ends when nobody reads the rest."""
        command = ["rbd", *words, *self._options]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as program:
            assert program.stdout is not None and program.stderr is not None
            found = program.stdout.read(count)
            if len(found) == count:
                program.kill()
                return found
            said = program.stderr.read().decode(errors="replace").strip()[-1000:]
        raise Refused(abs(program.returncode) or errno.EIO, f"{' '.join(command)}: {said}")

    def _run(self, program: str, *words: str, seconds: float | None = None) -> bytes:
        command = [program, *words, *self._options]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds or 4 * self._seconds
            )
        except FileNotFoundError:
            raise Refused(
                errno.ENOSYS,
                f"neither Ceph's bindings for this Python nor '{program}' are installed"
                " (packages python3-rados and python3-rbd, or ceph-common)",
            ) from None
        except subprocess.TimeoutExpired:
            raise Refused(errno.ETIMEDOUT, f"{' '.join(command)} did not end") from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-1000:]
            raise Refused(abs(done.returncode), f"{' '.join(command)}: {said}")
        return done.stdout
