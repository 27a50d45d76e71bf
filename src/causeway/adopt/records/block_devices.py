"""Block device mappings."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterable, Mapping
from typing import Any

from causeway.adopt.nova.objects import UnknownRecord, load
from causeway.model.block_device import BlockDevice

_SAME = (
    "instance_uuid", "source_type", "destination_type", "boot_index", "device_name", "volume_id", "volume_size",
    "volume_type", "snapshot_id", "image_id", "attachment_id", "tag", "disk_bus", "device_type", "guest_format", "created_at",
)  # fmt: skip


def block_devices_of(rows: Iterable[Mapping[str, Any]], what: str) -> list[BlockDevice]:
    """Raises UnknownRecord. Rows that say that there is no device are no devices."""
    return [_device(row, what) for row in rows if not row["no_device"]]


def _device(row: Mapping[str, Any], what: str) -> BlockDevice:
    if row["source_type"] is None or row["destination_type"] is None:
        raise UnknownRecord(f"{what}: block device {row['id']} has no source or no destination.")
    connection = load(row["connection_info"], what)
    return BlockDevice(
        # Rows that were made before Nova gave them uuids, and not touched since.
        uuid=row["uuid"] or str(uuids.uuid5(uuids.UUID(row["instance_uuid"]), str(row["id"]))),
        **{name: row[name] for name in _SAME},
        delete_on_termination=bool(row["delete_on_termination"]),
        connection_info=connection,
        multiattach=bool((connection or {}).get("multiattach")),
    )
