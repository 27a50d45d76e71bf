"""Where the options say that a host keeps its guests' local disks, if not in its own folder: a pool of Ceph, a shared folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from causeway.errors import Misconfigured
from causeway.virt.libvirt.storage import rbd_pool
from causeway.virt.libvirt.storage.rbd_pool import CephPool


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
