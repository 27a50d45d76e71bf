"""Orders about volumes and ports of existing guests.

Each order is carried out once for its operation.
"""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.outcomes import OperationToken
from causeway.model.pci import InstancePCIRequest, PciDevice
from causeway.rpc.declare import Client, call


class DeviceCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`.

    Each order raises TakenOver if another conductor owns the operation, and ClaimRefused if the operation has undone it since.
    """

    @call(since="1.14", monitor=True)
    def connect_volume(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_device: BlockDevice,
    ) -> BlockDevice:
        """Connects a volume to the host and attaches it to the guest. Returns how it is connected."""

    @call(since="1.14", monitor=True)
    def disconnect_volume(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_device: BlockDevice,
    ) -> None:
        """Detaches a volume from the guest, if it has it, and disconnects it. Raises GuestFailed if the guest keeps it."""

    @call(since="1.14", monitor=True)
    def claim_port_device(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        request: InstancePCIRequest,
    ) -> PciDevice:
        """Claims the device that a port needs, before it is plugged. `unplug_port` releases it.

        Raises ClaimRefused if the host has none.
        """

    @call(since="1.14", monitor=True)
    def plug_port(
        self, context: RequestContext, host: str, *, token: OperationToken, instance: Instance, port_id: str
    ) -> list[Vif]:
        """Binds a port to the host and attaches it. Returns the server's ports."""

    @call(since="1.14", monitor=True)
    def unplug_port(
        self, context: RequestContext, host: str, *, token: OperationToken, instance: Instance, vif: Vif
    ) -> None:
        """Detaches a port from the guest, if it has it. Raises GuestFailed if the guest keeps it."""
