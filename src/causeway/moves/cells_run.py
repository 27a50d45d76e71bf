"""A running operation that takes a server from one cell to another, or only from host to host."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from causeway.context import RequestContext
from causeway.hosts import liveness
from causeway.hosts.liveness import HostLife
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.operations import Operation
from causeway.rpc.compute import ComputeClient
from causeway.running.server_run import ServerRun
from causeway.running.services import ConductorServices
from causeway.sagas.environment import Environment
from causeway.store.cell import copies
from causeway.store.database import Database

# Seconds for which a step uses records that the step before has read. A step uses records that it has read itself to its end.
RECENT = 1.0


class CellsMemory(Protocol):
    """What the memories of these operations have in common. Inside a cell both cells are the same."""

    @property
    def source_cell(self) -> str: ...

    @property
    def target_cell(self) -> str: ...


C = TypeVar("C", bound=CellsMemory)


class CellsRun(ServerRun[C], Generic[C]):
    """One operation with a source cell and a target cell."""

    def __init__(
        self,
        services: ConductorServices,
        environment: Environment[Operation],
        context: RequestContext,
        saga: Operation,
        memory: C,
        *,
        asked_at: float,
    ) -> None:
        super().__init__(services, environment, context, saga, memory, asked_at=asked_at)
        self._read_at: dict[str, float] = {}
        self._kept_cells: set[str] = set()
        #: host -> when its life was last read, and the result
        self.lives: dict[str, tuple[float, HostLife]] = {}
        #: host -> its recorded address
        self.addresses: dict[str, str | None] = {}

    # where things are

    @property
    def source_database(self) -> Database:
        return self.services.cells.database(self.memory.source_cell)

    @property
    def target_database(self) -> Database:
        return self.services.cells.database(self.memory.target_cell)

    @property
    def source_computes(self) -> ComputeClient:
        return self.services.computes(self.memory.source_cell)

    @property
    def target_computes(self) -> ComputeClient:
        return self.services.computes(self.memory.target_cell)

    # records, read once for several steps that don't change them

    def refresh(self) -> None:
        """Discards the records that were read, except those of `keep_records`. In a repeated step or an undo, discards all."""
        cells, self._kept_cells = self._kept_cells, set()
        kept = {}
        if not self.is_repeated and not self.is_undoing:
            known = cells & self._cache.keys()
            kept = {cell: self._cache[cell] for cell in known if self.is_recent(self._read_at[cell])}
        super().refresh()
        self._cache.update(kept)

    def keep_records(self, cell_uuid: str, **written: Any) -> None:
        """Keeps this cell's records for the next step. ``written``: fields of the server that were written since the read."""
        self._kept_cells.add(cell_uuid)
        if cell_uuid in self._cache:
            vars(self._cache[cell_uuid][0]).update(written)

    def is_recent(self, at: float) -> bool:
        """Whether something that was read at ``at`` (the clock's `boot` time) is recent enough for another step."""
        return self.environment.clock.boot() - at < RECENT

    def know_records(self, cell_uuid: str, instance: Instance, devices: list[BlockDevice]) -> None:
        """Adds records of a cell that the present step has read itself, so that they are not read again."""
        self._cache[cell_uuid] = instance, devices
        self._read_at[cell_uuid] = self.environment.clock.boot()

    def source_instance(self) -> Instance:
        """The source cell's record of the server."""
        return self._records(self.memory.source_cell)[0]

    def source_devices(self) -> list[BlockDevice]:
        """The block devices in the source cell's records."""
        return self._records(self.memory.source_cell)[1]

    def target_instance(self) -> Instance:
        """The target cell's record of the server."""
        return self._records(self.memory.target_cell)[0]

    def target_devices(self) -> list[BlockDevice]:
        """The block devices in the target cell's records."""
        return self._records(self.memory.target_cell)[1]

    def _records(self, cell_uuid: str) -> tuple[Instance, list[BlockDevice]]:
        if cell_uuid not in self._cache:
            services = self.services
            found = copies.on_host(services.cells.database(cell_uuid), self.uuid, liveness.BINARY)
            self.know_records(cell_uuid, found.instance, found.block_devices)
            host = found.instance.host
            if host is not None:
                self.lives[host] = self._read_at[cell_uuid], liveness.of_service(services, host, found.service)
                self.addresses[host] = found.address
        records: tuple[Instance, list[BlockDevice]] = self._cache[cell_uuid]
        return records
