"""The pool of Ceph in which a host keeps its guests' local disks: options, account, monitors."""

from __future__ import annotations

import configparser
import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from causeway.errors import CausewayError, GuestFailed, StorageUnreachable
from causeway.virt.libvirt.guest_xml.rbd_source import CephAccess, Monitor
from causeway.virt.libvirt.storage.ceph_secrets import CEPH, CephSecrets
from causeway.virt.libvirt.storage.rbd.store import RbdStore

LOG = logging.getLogger(__name__)

_CLUSTER = "ceph"
_ASK_EVERY, _LOOK_EVERY = 60.0, 1.0


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


class PoolSize:
    """How large the pool is, as the host reports it: what Ceph said last, so that no report waits for Ceph.

    ``patience``: seconds that the first question waits for a Ceph that does not answer.
    """

    def __init__(self, store: RbdStore, patience: float = 60.0) -> None:
        self._store = store
        self._patience = patience
        self._asking = threading.Lock()
        self._gib: int | None = None
        self._asked_at = 0.0

    def gib(self) -> int:
        """Asks Ceph beside the caller, from time to time; the first time the caller waits.

        Raises `StorageUnreachable` if Ceph has never answered: without its storage a host makes no guests.
        """
        if self._gib is None:
            self._ask_first()
        elif time.monotonic() - self._asked_at > _ASK_EVERY and self._asking.acquire(blocking=False):
            threading.Thread(target=self._ask_again, daemon=True, name="size of the pool").start()
        return self._gib or 0

    def _ask_first(self) -> None:
        """A pool that was just made, or a Ceph that starts with its hosts, is waited for."""
        end = time.monotonic() + self._patience
        while True:
            try:
                self._ask()
            except StorageUnreachable:
                if time.monotonic() >= end or self._store.client.stopping.wait(_LOOK_EVERY):
                    raise
            else:
                return

    def _ask(self) -> None:
        _used, total = self._store.used_and_total()
        self._gib, self._asked_at = total >> 30, time.monotonic()

    def _ask_again(self) -> None:
        try:
            self._ask()
        except CausewayError as failure:
            LOG.warning(
                "Ceph did not say how large pool %s is: %s %s", self._store.id, failure.message, failure.details
            )
            self._asked_at = time.monotonic()
        finally:
            self._asking.release()


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
