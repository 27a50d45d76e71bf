"""The pool of Ceph in which a host keeps its guests' local disks: options, account, monitors."""

from __future__ import annotations

import configparser
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from causeway.errors import GuestFailed
from causeway.virt.libvirt.guest_xml.rbd_source import CephAccess, Monitor
from causeway.virt.libvirt.storage.ceph_secrets import CEPH, CephSecrets
from causeway.virt.libvirt.storage.rbd.store import RbdStore

_CLUSTER = "ceph"


@dataclass(frozen=True)
class CephPool:
    """[libvirt] images_rbd_pool, images_rbd_ceph_conf, rbd_user, rbd_secret_uuid, rbd_connect_timeout.

    Without ``secret_uuid`` Ceph asks guests for no key.
    """

    pool: str
    conf: str = ""
    user: str = ""
    secret_uuid: str | None = None
    connect_timeout: int = 5

    @property
    def conf_file(self) -> Path:
        return Path(self.conf or CEPH / f"{_CLUSTER}.conf")


def from_options(conf: cfg.ConfigOpts) -> CephPool | None:
    """Returns None for a host that keeps disks as files."""
    options = conf.libvirt
    if options.images_type != "rbd":
        return None
    return CephPool(
        options.images_rbd_pool,
        options.images_rbd_ceph_conf,
        options.rbd_user or "",
        options.rbd_secret_uuid,
        options.rbd_connect_timeout,
    )


def open_store(pool: CephPool, disk_timeout: float) -> RbdStore:
    """The pool, not reached yet."""
    return RbdStore.at(
        pool.pool, conf=pool.conf, user=pool.user, connect_timeout=pool.connect_timeout, disk_timeout=disk_timeout
    )


def access_of(pool: CephPool, store: RbdStore, secrets: CephSecrets) -> CephAccess:
    """How guests reach the pool now; libvirt has the key. Raises `GuestFailed`, `StorageUnreachable`."""
    monitors = tuple(_monitor(each) for each in store.monitors())
    if pool.secret_uuid is None:
        return CephAccess(monitors)
    user = store.client.access.user
    secrets.ensure(pool.secret_uuid, user, _key(pool, user, secrets))
    return CephAccess(monitors, user, pool.secret_uuid.lower())


def _key(pool: CephPool, user: str, secrets: CephSecrets) -> str | None:
    """The account's key, where Ceph's own configuration says that it is; None: in no keyring of the host."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(pool.conf_file.read_text(errors="replace"))
    except (OSError, configparser.Error) as error:
        raise GuestFailed("Ceph's configuration can't be read.", details=f"{pool.conf_file}: {error}") from error
    for section in (f"client.{user}", "client", "global"):
        named = parser.get(section, "keyring", fallback=None)
        if named and "$" not in named:
            return secrets.key_in(Path(named.split(",")[0].strip()), user)
    return secrets.key_of(user, pool.conf_file.stem, None)


def _monitor(address: str) -> Monitor:
    """Of ``ADDRESS:PORT``; an IPv6 address is in brackets."""
    name, _, port = address.rpartition(":")
    return Monitor(name.strip("[]"), port)
