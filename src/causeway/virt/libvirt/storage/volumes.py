"""Connects volumes to the host with os-brick, but for those in Ceph, and describes them as disks of guests."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from os_brick import exception as brick_exception
from os_brick import privileged
from os_brick.initiator import connector
from oslo_concurrency import lockutils, processutils

from causeway.errors import ClaimRefused, GuestFailed
from causeway.model.block_device import BlockDevice
from causeway.model.image import QCOW2, RAW
from causeway.turns import Turns
from causeway.virt.libvirt.bounded import within
from causeway.virt.libvirt.guest_xml.domain_xml import LIMITS, GuestDisk
from causeway.virt.libvirt.guest_xml.rbd_source import PROTOCOL, RbdSource
from causeway.virt.libvirt.storage import volume_needs
from causeway.virt.libvirt.storage.ceph_volumes import CephVolumes
from causeway.virt.libvirt.storage.shares import Shares
from causeway.virt.libvirt.storage.volume_secrets import VolumeSecrets

_SCAN_ATTEMPTS = 5
# Seconds for os-brick to connect or disconnect a volume: programs that it runs have no timeout (`mount` of a dead server).
_CONNECT_SECONDS = 300.0
# Seconds for it to look at this machine.
_LOOK_SECONDS = 60.0
_BRICK_ERRORS = (brick_exception.BrickException, processutils.ProcessExecutionError, OSError, ValueError)


class Volumes:
    """``shares``: mounts and unmounts NFS shares. ``lock_dir``: the locks of os-brick between processes.

    ``guests_with(volume_id)``: the guests whose definitions have the volume. A host connects a volume once, even if several of
    its guests have it, so it is disconnected with the last of them (bug 2048837). ``ceph``: for volumes in Ceph, which
    guests open by themselves. ``secrets``: has the keys of encrypted volumes.
    """

    def __init__(
        self,
        hostname: str,
        shares: Shares,
        lock_dir: Path,
        guests_with: Callable[[str], set[str]],
        ceph: CephVolumes,
        secrets: VolumeSecrets,
    ) -> None:
        self._ceph = ceph
        self.secrets = secrets
        self._guests_with = guests_with
        # volume id -> guests that have it, or will have it at once, as far as this process knows
        self._users: dict[str, set[str]] = {}
        self._turns = Turns()
        self._hostname = hostname
        self._shares = shares
        self._lock = threading.Lock()
        self._properties: dict[str, Any] | None = None
        # Without this os-brick fails when it wants a lock between processes.
        lockutils.set_defaults(str(lock_dir))
        _need_no_helper()

    def connector_properties(self, host_ip: str) -> dict[str, Any]:
        with self._lock:
            if self._properties is None:
                self._properties = connector_of(self._hostname, host_ip)
            return dict(self._properties)

    def check(self, connection_info: dict[str, Any]) -> None:
        """Raises `ClaimRefused` if this host can't open such a volume."""
        protocol, data = _protocol(connection_info), _data(connection_info)
        if data.get("encrypted") and data.get("format") not in (None, RAW, QCOW2):
            raise ClaimRefused(f"The host can't decrypt volumes of the format {data['format']}.")
        if protocol == PROTOCOL:
            self._ceph.check(data)
            return
        volume_needs.check(protocol, data)
        try:
            self._connector(protocol)
        except _BRICK_ERRORS as error:
            raise ClaimRefused(f"The host can't open volumes of the type '{protocol}'.", details=str(error)) from error

    def connect(self, uuid: str, volume: BlockDevice) -> GuestDisk:
        """Connects the volume and returns it as a disk of the guest. May be repeated. Raises `GuestFailed`."""
        if not volume.multiattach:
            return self._connect(volume)
        with self._turn(volume) as users:
            users.add(uuid)
            return self._connect(volume)

    def disconnect(self, uuid: str, volume: BlockDevice) -> None:
        """Disconnects the volume of a guest, unless another guest on this host has it too. Not connected: nothing happens."""
        if not volume.multiattach:
            self._disconnect(volume)
            return
        with self._turn(volume) as users:
            users.discard(uuid)
            if not users | self._guests_with(str(volume.volume_id)) - {uuid}:
                self._disconnect(volume)

    @contextmanager
    def _turn(self, volume: BlockDevice) -> Iterator[set[str]]:
        """Works on a volume for one guest at a time. Yields the guests that have it; the caller keeps the set up to date."""
        volume_id = str(volume.volume_id)
        with self._turns.of(volume_id):
            users = self._users.setdefault(volume_id, set())
            try:
                yield users
            finally:
                if not users:
                    del self._users[volume_id]

    def _connect(self, volume: BlockDevice) -> GuestDisk:
        info = volume.connection_info or {}
        data = _data(info)
        if _protocol(info) == PROTOCOL:
            return self.as_disk(volume, self._ceph.source(data), is_block=False)

        def connect() -> GuestDisk:
            device = self._connector(_protocol(info)).connect_volume(data)
            path = Path(str(device["path"]))
            return self.as_disk(volume, path, is_block=stat.S_ISBLK(path.stat().st_mode))

        kept = (
            nullcontext()
            if (export := _export(info)) is None
            else self._shares.connecting(export, str(volume.volume_id))
        )
        try:
            with kept:
                return within(_CONNECT_SECONDS, f"connect volume {volume.volume_id}", connect)
        except _BRICK_ERRORS as error:
            raise GuestFailed(f"Volume {volume.volume_id} could not be connected.", details=str(error)) from error

    def _disconnect(self, volume: BlockDevice) -> None:
        info = volume.connection_info
        if not info:
            return
        if volume.is_encrypted:
            self.secrets.discard(str(volume.volume_id))
        if _protocol(info) == PROTOCOL:
            return
        data = _data(info)

        def disconnect() -> None:
            self._connector(_protocol(info)).disconnect_volume(
                data, {"path": data.get("device_path")}, force=True, ignore_errors=True
            )

        try:
            within(_CONNECT_SECONDS, f"disconnect volume {volume.volume_id}", disconnect)
        except _BRICK_ERRORS as error:
            raise GuestFailed(f"Volume {volume.volume_id} could not be disconnected.", details=str(error)) from error
        if (export := _export(info)) is not None:
            self._shares.release(export, str(volume.volume_id))

    def size_in_ceph(self, volume: BlockDevice) -> int | None:
        """The bytes of a volume in Ceph; None: it is elsewhere. Raises `GuestFailed`."""
        info = volume.connection_info or {}
        return self._ceph.size(_data(info)) if _protocol(info) == PROTOCOL else None

    def as_disk(self, volume: BlockDevice, source: Path | RbdSource, *, is_block: bool) -> GuestDisk:
        """A volume, connected at ``source``, as a disk of its guest."""
        data = _data(volume.connection_info or {})
        if not volume.device_name:
            raise GuestFailed(f"Volume {volume.volume_id} was given no device name.")
        disk_format = str(data.get("format") or RAW)
        if disk_format not in (RAW, QCOW2):
            raise GuestFailed(
                f"Volume {volume.volume_id} is a file of the format {disk_format}, which guests can't have."
            )
        return GuestDisk(
            target=Path(volume.device_name).name,
            source=source,
            disk_format=disk_format,
            is_block=is_block,
            serial=volume.volume_id,
            is_root=volume.is_root,
            cache="none"
            if is_block or isinstance(source, RbdSource) or direct_io_works(source.parent)
            else "writeback",
            read_only=data.get("access_mode") == "ro",
            bus=volume.disk_bus,
            shareable=volume.multiattach,
            limits=_limits(data),
            # Without it the guest would see what is encrypted, and write over it what is not.
            secret=str(volume.volume_id) if volume.is_encrypted else None,
        )

    def _connector(self, protocol: str) -> Any:
        options: dict[str, Any] = {}
        if protocol in ("nfs", "glusterfs", "quobyte", "vzstorage", "scality"):
            self._shares.mount_base.mkdir(parents=True, exist_ok=True)
            options["nfs_mount_point_base"] = str(self._shares.mount_base)
        return connector.InitiatorConnector.factory(
            protocol.upper(), "", use_multipath=False, device_scan_attempts=_SCAN_ATTEMPTS, **options
        )


def _export(info: dict[str, Any]) -> str | None:
    """The NFS share that a volume is in; None: it is in none."""
    export = _data(info).get("export")
    return str(export) if _protocol(info) == "nfs" and export else None


def connector_of(hostname: str, host_ip: str) -> dict[str, Any]:
    """What the volume service needs to know of this machine to export a volume to it. Raises `GuestFailed`."""
    _need_no_helper()

    def look() -> dict[str, Any]:
        found: dict[str, Any] = connector.get_connector_properties(
            root_helper="", my_ip=host_ip, multipath=False, enforce_multipath=False, host=hostname
        )
        return found

    try:
        found = within(_LOOK_SECONDS, "say what it connects volumes with", look)
    except _BRICK_ERRORS as error:
        raise GuestFailed(
            "What this host has to connect volumes with could not be found out.", details=str(error)
        ) from error
    return dict(found)


def _need_no_helper() -> None:
    """As root this process needs no helper process with more rights."""
    if os.geteuid() == 0:
        privileged.default.set_client_mode(False)


def direct_io_works(directory: Path) -> bool:
    """Whether files in the directory can be opened without the page cache, which not every file system allows."""
    try:
        handle = os.open(directory, os.O_RDWR | os.O_TMPFILE | os.O_DIRECT)
    except OSError:
        return False
    os.close(handle)
    return True


def _limits(data: dict[str, Any]) -> dict[str, int]:
    """Block storage sends what hypervisors shall limit, and may send specs of other hypervisors."""
    specs = data.get("qos_specs") or {}
    try:
        return {name: int(specs[name]) for name in LIMITS if specs.get(name) is not None}
    except (TypeError, ValueError) as error:
        raise GuestFailed("A limit of the volume (qos_specs) is no number.", details=f"{specs!r:.300}") from error


def _protocol(connection_info: dict[str, Any]) -> str:
    return str(connection_info.get("driver_volume_type", "")).lower()


def _data(connection_info: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = connection_info.get("data") or {}
    return data
