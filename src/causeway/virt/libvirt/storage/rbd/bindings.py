"""RBD through Ceph's bindings for Python: some ten milliseconds for a call. Only workers load them.

No index of packages has usable ones; distributions do (``python3-rados``, ``python3-rbd``), for the Python that they ship. A
virtual environment of the same version loads them from where the distribution puts them, by their two files: nothing else of the
system's packages is seen.
"""

from __future__ import annotations

import errno
import importlib.util
import json
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from causeway.virt.libvirt.storage.extents import joined
from causeway.virt.libvirt.storage.rbd.protocol import Access, Beginning, Image, Parent, Refused, Usage

_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
_FOLDERS = (
    "/usr/lib/python3/dist-packages",
    f"/usr/lib64/python{_VERSION}/site-packages",
    f"/usr/lib/python{_VERSION}/site-packages",
)
# layering, exclusive-lock, object-map, fast-diff, deep-flatten: whatever ceph.conf makes by default
_FEATURES = 1 | 4 | 8 | 16 | 32


class Missing(Exception):
    """This Python can't load them."""


class BoundPool:
    """A pool, reached through librados and librbd. Raises `Refused` with the errno of what failed."""

    by = "bindings"

    def __init__(self, access: Access) -> None:
        """Raises `Missing`."""
        self._rados, self._rbd = load("rados"), load("rbd")
        self._name = access.pool
        with _refusals():
            self._cluster = self._rados.Rados(
                conffile=access.conf,
                rados_id=access.user,
                conf={
                    "client_mount_timeout": str(access.connect_timeout),
                    "rados_mon_op_timeout": str(access.connect_timeout),
                    "rados_osd_op_timeout": str(access.request_timeout),
                    "log_to_stderr": "false",
                    "err_to_stderr": "false",
                },
            )
            self._cluster.connect()
            self._pool = self._cluster.open_ioctx(access.pool)
            self.fsid: str = self._cluster.get_fsid()
        self._do = self._rbd.RBD()

    def names(self) -> list[str]:
        with _refusals():
            return list(self._do.list(self._pool))

    def describe(self, name: str) -> Image:
        with _refusals(), self._rbd.Image(self._pool, name, read_only=True) as image:
            snapshots = list(image.list_snaps())
            users = [each for each in snapshots if each["namespace"] == self._rbd.RBD_SNAP_NAMESPACE_TYPE_USER]
            return Image(
                id=image.id(),
                size=image.size(),
                metadata=dict(image.metadata_list()),
                snapshots=[each["name"] for each in users],
                kept=sum(each["namespace"] == self._rbd.RBD_SNAP_NAMESPACE_TYPE_TRASH for each in snapshots),
                watchers=[each["addr"] for each in image.watchers_list()],
                parent=self._parent(image),
            )

    def _parent(self, image: Any) -> Parent | None:
        try:
            found = image.get_parent_image_spec()
        except self._rbd.ImageNotFound:
            return None
        return Parent(found["pool_name"], found["image_name"], found["snap_name"])

    def read(self, image: Parent, most: int) -> Beginning:
        with (
            self._pool_of(image) as pool,
            self._rbd.Image(pool, image.image, snapshot=image.snapshot, read_only=True) as opened,
        ):
            size = opened.size()
            return Beginning(size, bytes(opened.read(0, min(size, most))))

    def changes(self, name: str, since: str | None, until: str | None) -> list[tuple[int, int]]:
        with _refusals(), self._rbd.Image(self._pool, name, snapshot=until, read_only=True) as image:
            found: list[tuple[int, int]] = []
            objects: list[tuple[int, int]] = []

            def list_into(extents: list[tuple[int, int]], offset: int, length: int, *, whole: bool) -> None:
                image.diff_iterate(
                    offset, length, since, lambda at, size, _exists: extents.append((at, size)), True, whole
                )

            # Which objects have changed is in Ceph's map of them. To ask each object takes as long as the disk is large.
            list_into(objects, 0, image.size(), whole=True)
            for offset, length in joined(objects, image.size()):
                list_into(found, offset, length, whole=False)
            return joined(found, image.size())

    def set_metadata(self, name: str, key: str, value: str) -> None:
        with self._open(name) as image:
            image.metadata_set(key, value)

    def make_snapshot(self, name: str, snapshot: str, *, protected: bool) -> None:
        with self._open(name) as image:
            try:
                image.create_snap(snapshot)
            except self._rbd.ImageExists:
                if not protected:
                    raise
            if protected and not image.is_protected_snap(snapshot):
                image.protect_snap(snapshot)

    def delete_snapshot(self, name: str, snapshot: str) -> None:
        with self._open(name) as image:
            if image.is_protected_snap(snapshot):
                image.unprotect_snap(snapshot)
            image.remove_snap(snapshot)

    def roll_back(self, name: str, snapshot: str) -> None:
        with self._open(name) as image:
            image.rollback_to_snap(snapshot)

    def rename(self, name: str, to: str) -> None:
        with _refusals():
            self._do.rename(self._pool, name, to)

    def remove(self, name: str) -> None:
        with _refusals():
            self._do.remove(self._pool, name)

    def move_to_trash(self, name: str) -> None:
        with _refusals():
            self._do.trash_move(self._pool, name, 0)

    def create(self, name: str, size: int) -> None:
        with _refusals():
            self._do.create(self._pool, name, size, old_format=False, features=_FEATURES)

    def clone(self, parent: Parent, name: str) -> None:
        with self._pool_of(parent) as pool:
            self._do.clone(pool, parent.image, parent.snapshot, self._pool, name, features=_FEATURES)

    def grow(self, name: str, size: int) -> None:
        with self._open(name) as image:
            if image.size() < size:
                image.resize(size)

    def flatten(self, name: str) -> None:
        with self._open(name) as image:
            image.flatten()

    def blocklist(self, addresses: list[str], seconds: float) -> None:
        for address in addresses:
            self._command({"prefix": "osd blocklist", "blocklistop": "add", "addr": address, "expire": seconds})
        with _refusals():
            self._cluster.wait_for_latest_osdmap()

    def use(self) -> Usage:
        return usage_in(self._command({"prefix": "df", "format": "json"}), self._name)

    def monitors(self) -> list[str]:
        return monitors_in(self._command({"prefix": "mon dump", "format": "json"}))

    def _command(self, command: dict[str, Any]) -> bytes:
        with _refusals():
            code, said, error = self._cluster.mon_command(json.dumps(command), b"")
        if code:
            raise Refused(abs(code), str(error))
        return bytes(said)

    @contextmanager
    def _pool_of(self, image: Parent) -> Iterator[Any]:
        with _refusals():
            if image.pool == self._name:
                yield self._pool
                return
            other = self._cluster.open_ioctx(image.pool)
            try:
                yield other
            finally:
                other.close()

    @contextmanager
    def _open(self, name: str) -> Iterator[Any]:
        with _refusals(), self._rbd.Image(self._pool, name) as image:
            yield image


def usage_in(said: bytes, pool: str) -> Usage:
    """Finds a pool in what Ceph's ``df`` said."""
    found = {each["name"]: each["stats"] for each in json.loads(said)["pools"]}.get(pool)
    if found is None:
        raise Refused(errno.EAGAIN, f"df does not know pool {pool} yet")
    return Usage(int(found["stored"]), int(found["stored"]) + int(found["max_avail"]))


def monitors_in(said: bytes) -> list[str]:
    """Finds in what Ceph's ``mon dump`` said where the monitors listen: for old clients, which all have, if they do."""
    found = []
    for monitor in json.loads(said)["mons"]:
        addresses = {each["type"]: each["addr"] for each in monitor["public_addrs"]["addrvec"]}
        found.append(str(addresses.get("v1") or addresses["v2"]))
    return found


def load(name: str) -> ModuleType:
    """Loads one of the two. Raises `Missing`."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pass
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for folder in _FOLDERS:
        path = Path(folder) / f"{name}{suffix}"
        if path.exists():
            loader = ExtensionFileLoader(name, str(path))
            spec = importlib.util.spec_from_file_location(name, path, loader=loader)
            assert spec is not None
            try:
                module = importlib.util.module_from_spec(spec)
                loader.exec_module(module)
            except ImportError as error:
                raise Missing(str(error)) from error
            # The bindings of RBD import those of librados by name.
            sys.modules[name] = module
            return module
    raise Missing(f"no {name}{suffix} in {', '.join(_FOLDERS)}")


@contextmanager
def _refusals() -> Iterator[None]:
    """Makes a `Refused` of what the bindings raise."""
    try:
        yield
    except Refused:
        raise
    except Exception as error:  # their classes are known only once they are loaded
        if type(error).__module__ not in ("rados", "rbd"):
            raise
        raise Refused(abs(int(getattr(error, "errno", 0) or 0)), f"{type(error).__name__}: {error}") from error
