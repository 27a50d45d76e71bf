"""What the computes of a cell tell their cell's conductor, over the cell's message queue."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.outcomes import HostReport
from causeway.rpc.client import RpcClient
from causeway.rpc.transport import Transport

TOPIC = "cell_conductor"
VERSION = "1.0"


class CellConductorClient:
    """The conductor of the cell, as its computes see it."""

    def __init__(self, transport: Transport) -> None:
        self._rpc = RpcClient(transport, TOPIC, version=VERSION)

    def report_host(self, context: RequestContext, *, report: HostReport) -> bool:
        """Tells that the host is alive and what it has; returns whether the host is enabled."""
        return self._rpc.call(context, "report_host", result=bool, report=report)

    def report_progress(
        self, context: RequestContext, *, migration_uuid: str, step: str, bytes_done: int, bytes_total: int
    ) -> None:
        """Tells how far the transfer of a disk has come."""
        self._rpc.cast(
            context,
            "report_progress",
            migration_uuid=migration_uuid,
            step=step,
            bytes_done=bytes_done,
            bytes_total=bytes_total,
        )
