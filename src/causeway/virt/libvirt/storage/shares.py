"""NFS shares with volumes: mounted with the first volume that a guest here has, unmounted after the last."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from os_brick.remotefs.remotefs import RemoteFsClient

from causeway.errors import GuestFailed
from causeway.turns import Turns
from causeway.virt.libvirt.commands import run

LOG = logging.getLogger(__name__)

# Seconds: `umount` of a dead server does not end by itself.
_UNMOUNT_SECONDS = 60.0
_MOUNTS = Path("/proc/self/mountinfo")


class Shares:
    """``mount_base``: where they are mounted.

    ``guests_in(name)``: the guests whose definitions have a disk in a folder of this name. Each share has its own, and links may
    lead there.
    """

    def __init__(self, mount_base: Path, guests_in: Callable[[str], set[str]]) -> None:
        self.mount_base = mount_base
        self._guests_in = guests_in
        self._turns = Turns()
        # share -> volumes of it that are connected, or will be at once, as far as this process knows
        self._volumes: dict[str, set[str]] = {}

    @contextmanager
    def connecting(self, export: str, volume_id: str) -> Iterator[None]:
        """Keeps a share mounted for a volume from now on."""
        with self._turn(export) as volumes:
            volumes.add(volume_id)
            yield

    def release(self, export: str, volume_id: str) -> None:
        """Unmounts the share if no guest of this host has a volume of it. Does not raise: a mount more hurts nobody."""
        with self._turn(export) as volumes:
            volumes.discard(volume_id)
            point = self._mount_point(export)
            try:
                if not volumes and str(point) in _mounted() and not self._guests_in(point.name):
                    run("umount", point, timeout=_UNMOUNT_SECONDS)
            except (GuestFailed, OSError) as failure:
                LOG.warning("Share %s stays mounted at %s: %s", export, point, failure)

    def _mount_point(self, export: str) -> Path:
        base = self.mount_base.resolve()
        return Path(RemoteFsClient("nfs", "", nfs_mount_point_base=str(base)).get_mount_point(export))

    @contextmanager
    def _turn(self, export: str) -> Iterator[set[str]]:
        """Nobody else mounts or unmounts the share meanwhile. Yields its volumes; the caller keeps the set up to date."""
        with self._turns.of(export):
            volumes = self._volumes.setdefault(export, set())
            try:
                yield volumes
            finally:
                if not volumes:
                    del self._volumes[export]


def _mounted() -> set[str]:
    """Where something is mounted, without asking a file system: one whose server is dead would not answer."""
    return {line.split()[4] for line in _MOUNTS.read_text().splitlines()}
