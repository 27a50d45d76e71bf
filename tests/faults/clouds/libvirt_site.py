"""A cloud in a process of its own whose guests are real."""

from __future__ import annotations

from pathlib import Path

from tests.faults.clouds.guests import LibvirtGuests, guest_image_cache
from tests.faults.clouds.site import ChildSite


class LibvirtSite(ChildSite):
    """In a process of its own, with real guests; needs root, QEMU and libvirt (`causeway.virt.lab.hosts.missing`)."""

    driver = "libvirt"

    guests: LibvirtGuests

    def __init__(self, directory: Path, *, hosts_per_cell: int = 1) -> None:
        super().__init__(directory, hosts_per_cell=hosts_per_cell)
        self.guests = LibvirtGuests(self.state.lab, self.hosts)
        guest_image_cache().mkdir(parents=True, exist_ok=True)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "cache").symlink_to(guest_image_cache())

    def stop(self) -> None:
        try:
            super().stop()
        finally:
            self.guests.stop()

    def double_starts(self) -> list[str]:
        """Not seen while it happens: that no two guests run is looked at when all has settled."""
        return []
