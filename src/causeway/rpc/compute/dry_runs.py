"""Calls before a move is decided. They change nothing."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.candidates import DiskMeasure, PreCheck
from causeway.model.instance import Instance
from causeway.rpc.declare import Client, call


class DryRunCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`. ``timeout``: seconds that the caller waits."""

    @call(since="1.14")
    def check_move_to_host(
        self,
        context: RequestContext,
        host: str,
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        timeout: float,
    ) -> list[PreCheck]:
        """Returns the host's checks of a move of the server to this host, with the flavor of ``instance``. Changes nothing."""

    @call(since="1.14")
    def measure_disks(self, context: RequestContext, host: str, *, instance_uuid: str, timeout: float) -> DiskMeasure:
        """Returns how many bytes a server's disks take on the host."""
