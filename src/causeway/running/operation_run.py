"""A running operation inside one cell, as its steps see it."""

from __future__ import annotations

from typing import Generic

from causeway import errors
from causeway.model.block_device import BlockDevice
from causeway.model.host import CellMapping
from causeway.model.instance import Instance
from causeway.rpc.compute import ComputeClient
from causeway.running.server_run import ServerRun
from causeway.sagas.run import M
from causeway.store.cell import actions, block_devices, instances
from causeway.store.database import Database


class OperationRun(ServerRun[M], Generic[M]):
    """The server stays in its cell while the operation runs."""

    _found_home: tuple[CellMapping, Database] | None = None

    @property
    def cell(self) -> CellMapping:
        return self._home()[0]

    @property
    def database(self) -> Database:
        """The database of the server's cell. Usable as long as this conductor owns the operation."""
        self.check_lease()
        return self._home()[1]

    @property
    def computes(self) -> ComputeClient:
        """The compute services of the server's cell."""
        return self.services.computes(self.cell.uuid)

    def instance(self, *, tags: bool = True) -> Instance:
        """The server's record. Raises ServerNotFound. ``tags`` False: they are not read if they are not known."""
        found: Instance | None = self._cache.get("instance", None if tags else self._cache.get("untagged"))
        if found is None:
            found = instances.find(self.database, self.uuid, with_tags=tags)
            if found is None:
                raise errors.ServerNotFound(self.uuid)
            self._cache["instance" if tags else "untagged"] = found
        return found

    def devices(self) -> list[BlockDevice]:
        """The server's block devices."""
        if "devices" not in self._cache:
            self._cache["devices"] = block_devices.of_instance(self.database, self.uuid)
        found: list[BlockDevice] = self._cache["devices"]
        return found

    def attachments(self) -> set[str | None]:
        """The attachments of volumes that the server's record has now: other operations may have added some."""
        return {device.attachment_id for device in block_devices.of_instance(self.database, self.uuid)}

    def _home(self) -> tuple[CellMapping, Database]:
        if self._found_home is None:
            cells, cell_uuid = self.services.cells, self.saga.cell_uuid
            known = None if cell_uuid is None else (cells.mapping(cell_uuid), cells.database(cell_uuid))
            self._found_home = known or cells.of_server(self.uuid)
        return self._found_home

    def is_recorded(self, sentence: str) -> bool:
        """Whether the failure is already recorded. If so, another request may be working on the server by now."""
        with self.database.read() as connection:
            return actions.has_message_in(connection, self.uuid, self.context.request_id, sentence)
