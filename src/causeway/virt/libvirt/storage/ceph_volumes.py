"""Volumes in Ceph, as the volume service describes them. Guests open them by themselves (`rbd_source`): the host has no part."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import Any

from causeway.errors import ClaimRefused, GuestFailed
from causeway.virt.libvirt.guest_xml.rbd_source import IMAGE, MONITOR_PORT, PROTOCOL, CephAccess, Monitor, RbdSource
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.ceph_secrets import CephSecrets

_CLUSTER = "ceph"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_USER = r"[A-Za-z0-9_.+-]+"
# Seconds for Ceph to open an image. Its library would wait for minutes, also if the key is wrong.
_OPEN_SECONDS = 20.0
_MONITOR_SECONDS = 5.0


@dataclass(frozen=True)
class CephAccount:
    """[libvirt] rbd_user and rbd_secret_uuid: for what the volume service leaves open."""

    user: str | None = None
    secret_uuid: str | None = None


class CephVolumes:
    """Of one host."""

    def __init__(self, secrets: CephSecrets, account: CephAccount) -> None:
        self._secrets = secrets
        self._account = account

    def check(self, data: dict[str, Any]) -> None:
        """Opens the volume for reading, as a guest will. Raises `ClaimRefused` if that does not work.

        If only libvirt may know the key, it only asks whether a monitor listens.
        """
        try:
            source = self._described(data)
            key = self._key_of(source, data)
            if key is not None or source.access.secret_uuid is None:
                qemu_img.size_in_ceph(source, key, _OPEN_SECONDS)
            else:
                qemu_img.require_ceph()
                _require_monitor(source.access.monitors)
        except GuestFailed as failure:
            raise ClaimRefused(failure.message, details=failure.details) from failure

    def source(self, data: dict[str, Any]) -> RbdSource:
        """The volume for a guest's definition; libvirt has the key. Raises `GuestFailed`."""
        source = self._described(data)
        self._key_of(source, data)
        return source

    def size(self, data: dict[str, Any]) -> int:
        """In bytes. Raises `GuestFailed`, also if only libvirt may know the key."""
        source = self._described(data)
        key = self._key_of(source, data)
        if source.access.secret_uuid is not None and key is None:
            raise GuestFailed(
                f"How large image {source.image} in Ceph is can't be found out: libvirt's secret is private, and the host has no"
                f" keyring of account {source.access.user}."
            )
        return qemu_img.size_in_ceph(source, key, _OPEN_SECONDS)

    def _described(self, data: dict[str, Any]) -> RbdSource:
        """Raises `GuestFailed` for what is not complete, and for what would be no name in a definition."""
        image, hosts, ports = data.get("name"), data.get("hosts") or [], data.get("ports") or []
        if not re.fullmatch(IMAGE, str(image)):
            raise _refused("an image (POOL/IMAGE)", image)
        if ports and len(ports) != len(hosts):
            raise _refused("as many ports as monitors", ports)
        monitors = []
        for address, port in zip(hosts, ports or [None] * len(hosts), strict=True):
            # Ceph writes IPv6 addresses in brackets.
            name = str(address).strip("[]")
            if not re.fullmatch(r"[A-Za-z0-9_.:-]+", name):
                raise _refused("addresses of monitors", address)
            if port is not None and not re.fullmatch(r"[0-9]{1,5}", str(port)):
                raise _refused("ports of monitors", port)
            monitors.append(Monitor(name, None if port is None else str(port)))
        return RbdSource(str(image), self._access(data, tuple(monitors)))

    def _access(self, data: dict[str, Any], monitors: tuple[Monitor, ...]) -> CephAccess:
        """What the volume service says is first: its Ceph may be another one than that of the host's options."""
        own = self._account
        if not data.get("auth_enabled") and own.secret_uuid is None:
            return CephAccess(monitors)
        user = data.get("auth_username") or own.user
        secret_uuid = data.get("secret_uuid") or own.secret_uuid
        if not re.fullmatch(_USER, str(user or "")):
            raise _refused("an account ([libvirt] rbd_user has none either)", user)
        if not re.fullmatch(_UUID, str(secret_uuid)):
            raise _refused("a secret ([libvirt] rbd_secret_uuid has none either)", secret_uuid)
        return CephAccess(monitors, str(user), str(secret_uuid).lower())

    def _key_of(self, source: RbdSource, data: dict[str, Any]) -> str | None:
        """libvirt has the secret that the guest needs when this returns. Returns the key, if it may be known here."""
        user, secret_uuid = source.access.user, source.access.secret_uuid
        if user is None or secret_uuid is None:
            return None
        cluster, sent = str(data.get("cluster_name") or _CLUSTER), data.get("keyring")
        return self._secrets.ensure(secret_uuid, user, self._secrets.key_of(user, cluster, sent))


def _require_monitor(monitors: tuple[Monitor, ...]) -> None:
    """Raises `GuestFailed` if none of them listens. Without any, Ceph's own files say where they are."""
    said = []
    for monitor in monitors:
        try:
            socket.create_connection((monitor.address, int(monitor.port or MONITOR_PORT)), _MONITOR_SECONDS).close()
        except OSError as error:
            said.append(f"{monitor.address}: {error}")
        else:
            return
    if said:
        raise GuestFailed("No monitor of Ceph can be reached.", details="; ".join(said))


def _refused(what: str, value: object) -> GuestFailed:
    return GuestFailed(
        f"The volume service describes a volume of the type '{PROTOCOL}' without {what}.", details=f"{value!r:.200}"
    )
