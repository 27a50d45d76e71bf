"""Nova's columns take more than ours: some, whatever a user of its API wrote."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from causeway.adopt.nova.objects import UnknownRecord
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.store.cell import block_devices, instances


def require_fitting(instance: Instance, devices: list[BlockDevice], what: str) -> None:
    """Raises UnknownRecord if a text is longer than our column, as one row of a batch would fail all."""
    _require(instance, instances.TABLE, what)
    for device in devices:
        _require(device, block_devices.TABLE, what)


def _require(record: Any, table: sa.Table, what: str) -> None:
    for column in table.columns:
        value, most = getattr(record, column.name, None), getattr(column.type, "length", None)
        if most is not None and isinstance(value, str) and len(value) > most:
            raise UnknownRecord(f"{what}: its {column.name} has {len(value)} characters; {most} are possible here.")


__all__ = ["require_fitting"]
