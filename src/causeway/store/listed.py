"""A server as it is read to be listed or shown: its row, with JSON still as text.

To show a server, little of its JSON is needed, or all of it unchanged. Making the model's objects from it took longer than
everything else. `Listed.instance` makes them for callers that need them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway.model.instance import Instance
from causeway.model.states import ServerStatus, TaskState, VmState, server_status
from causeway.store.cell import instances
from causeway.store.cell.instances import TABLE

JSON_COLUMNS = frozenset(column.name for column in TABLE.c if isinstance(column.type, sa.JSON))

_decode = msgspec.json.Decoder().decode


class ShownIp(msgspec.Struct):
    address: str
    version: int = 4
    floating_ips: list[str] = []


class ShownVif(msgspec.Struct):
    """The parts of a `causeway.model.network.Vif` that are shown and searched."""

    address: str
    network_label: str = ""
    fixed_ips: list[ShownIp] = []
    security_groups: list[str] = []


_decode_vifs = msgspec.json.Decoder(list[ShownVif]).decode


@dataclass(frozen=True, slots=True)
class AttachedVolume:
    id: str
    delete_on_termination: bool


@dataclass
class Listed:
    """A server with the cell of its row (None: a build request).

    ``values``: of the requested columns. ``group``: its server group, if requested.
    """

    values: dict[str, Any]
    cell_uuid: str | None
    tags: list[str] = field(default_factory=list)
    volumes: list[AttachedVolume] = field(default_factory=list)
    group: str | None = None

    @classmethod
    def of(
        cls, instance: Instance, cell_uuid: str | None, volumes: list[AttachedVolume], *, group: str | None = None
    ) -> Listed:
        """Makes a `Listed` as if it had been read from this instance's row."""
        values = instances.row_of(instance)
        values |= {name: msgspec.json.encode(values[name]).decode() for name in JSON_COLUMNS & values.keys()}
        return cls(values, cell_uuid, list(instance.tags), volumes, group)

    @cached_property
    def instance(self) -> Instance:
        """The server as an object of the model, made at the first use. Changes to it do not change ``values``."""
        texts = {name: _decode(text) for name, text in self.values.items() if name in JSON_COLUMNS and text is not None}
        return msgspec.convert(self.values | texts | {"tags": list(self.tags)}, Instance)

    @property
    def uuid(self) -> str:
        uuid: str = self.values["uuid"]
        return uuid

    @property
    def status(self) -> ServerStatus:
        values = self.values
        return ServerStatus.DELETED if values["deleted"] else _status(values["vm_state"], values["task_state"])

    @property
    def metadata(self) -> dict[str, str]:
        found: dict[str, str] = _decode(self.values["metadata"])
        return found

    @property
    def system_metadata(self) -> dict[str, str]:
        found: dict[str, str] = _decode(self.values["system_metadata"])
        return found

    @property
    def vifs(self) -> list[ShownVif]:
        return _decode_vifs(self.values["network_info"])


@cache
def _status(vm_state: str, task_state: str | None) -> ServerStatus:
    return server_status(VmState(vm_state), None if task_state is None else TaskState(task_state))
