"""Where a host keeps its guests' local disks: in its own folder, in a pool of Ceph, or in a folder that several hosts mount."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from causeway.errors import Misconfigured
from causeway.virt.libvirt.storage import rbd_pool
from causeway.virt.libvirt.storage.ceph_secrets import CephSecrets
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.libvirt.storage.folder_disks import FolderDisks
from causeway.virt.libvirt.storage.qcow2_store import Qcow2Store
from causeway.virt.libvirt.storage.rbd_disks import RbdDisks
from causeway.virt.libvirt.storage.rbd_pool import CephPool, PoolSize, access_of, open_store


@dataclass(frozen=True)
class SharedFolder:
    """[libvirt] shared_disks_path: a folder that several hosts mount at the same path."""

    path: Path


DiskPool = CephPool | SharedFolder


def from_options(conf: cfg.ConfigOpts) -> DiskPool | None:
    """Returns None for a host that keeps disks for itself. Raises Misconfigured if two kinds of storage are named."""
    pool, path = rbd_pool.from_options(conf), conf.libvirt.shared_disks_path
    if not path:
        return pool
    if pool is not None:
        raise Misconfigured(
            "[libvirt] images_type is rbd, so shared_disks_path must not be set: disks are in one place."
        )
    return SharedFolder(Path(path))


@dataclass(frozen=True)
class OpenDisks:
    """``gib``: the size of the storage, if other hosts reach it, too. ``close``: ends what it holds."""

    disks: InstanceDisks
    gib: Callable[[], int] | None = None
    close: Callable[[], None] = lambda: None


def open_disks(pool: DiskPool | None, directory: Path, timeout: float, host: str, secrets: CephSecrets) -> OpenDisks:
    """The disks of the guests of ``host``, whose folders are in ``directory``. The storage is not reached yet."""
    if pool is None:
        return OpenDisks(InstanceDisks(directory, timeout))
    if isinstance(pool, SharedFolder):
        folder = Qcow2Store(pool.path, timeout)
        return OpenDisks(FolderDisks(directory, timeout, folder, host), lambda: folder.used_and_total()[1] >> 30)
    store = open_store(pool, timeout)
    disks = RbdDisks(directory, timeout, store, host, lambda: access_of(pool, store, secrets))
    return OpenDisks(disks, PoolSize(store).gib, store.close)
