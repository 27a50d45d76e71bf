"""Counts the orders under way that read or write whole disks of this host. Hosts that have fewer of them are preferred."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Nova counts builds, rebuilds, resizes, snapshots, backups, rescues and unshelves (nova/compute/stats.py, `io_workload`).
ORDERS = frozenset(
    {
        "begin_round",
        "build_guest",
        "copy_volume",
        "finish_snapshot_based_resize_at_dest",
        "live_migration",
        "merge_volume_files",
        "prep_snapshot_based_resize_at_source",
        "rebuild_guest",
        "receive_part",
        "receive_round",
        "rescue_guest",
        "save_guest_at_source",
        "send_offered",
        "send_part",
        "store_disk",
        "store_image",
        "upload_disk",
        "wake_guest_at_dest",
    }
)


class DiskWork:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    @property
    def count(self) -> int:
        with self._lock:
            return self._count

    @contextmanager
    def during(self, order: str) -> Iterator[None]:
        """Encloses the work of an order, which counts if it is one of `ORDERS`."""
        one = int(order in ORDERS)
        with self._lock:
            self._count += one
        try:
            yield
        finally:
            with self._lock:
                self._count -= one
