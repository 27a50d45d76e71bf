"""What a conductor asks of computes about volumes and ports of guests that are there.

Attaches and detaches are orders (`compute_orders`). Their former names, without a token, are for hosts of an older version.
"""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.outcomes import MoveToken
from causeway.model.pci import InstancePCIRequest, PciDevice
from causeway.rpc.compute_guests import NOTHING
from causeway.rpc.compute_orders import ComputeOrders


class ComputeDevices(ComputeOrders):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    def connect_volume(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, block_device: BlockDevice
    ) -> BlockDevice:
        """Connects a volume to the host and gives it to the guest; returns how it is connected."""
        return self._order(
            "connect_volume",
            BlockDevice,
            self.attach_volume,
            context,
            host,
            token,
            since=versions.ALL_ORDERS_RPC,
            instance=instance,
            block_device=block_device,
        )

    def disconnect_volume(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, block_device: BlockDevice
    ) -> None:
        """Takes a volume from the guest, if it has it, and disconnects it; raises GuestFailed if the guest keeps it."""
        self._order(
            "disconnect_volume",
            NOTHING,
            self.detach_volume,
            context,
            host,
            token,
            since=versions.ALL_ORDERS_RPC,
            instance=instance,
            block_device=block_device,
        )

    def claim_port_device(
        self,
        context: RequestContext,
        host: str,
        *,
        token: MoveToken,
        instance: Instance,
        request: InstancePCIRequest,
    ) -> PciDevice:
        """Claims the device that a port needs, before it is plugged. `unplug_port` releases it.

        Raises ClaimRefused if the host has none, NotImplementedHere if it is of an earlier release.
        """
        too_old = errors.NotImplementedHere(
            f"Host {host} can't attach ports that need a device yet: its compute service is of an earlier release, or held"
            " to one."
        )
        return self._rpc.order_if_known(
            context,
            "claim_port_device",
            version=versions.PORT_DEVICES_RPC,
            too_old=too_old,
            result=PciDevice,
            server=host,
            token=token,
            instance=instance,
            request=request,
        )

    def plug_port(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, port_id: str
    ) -> list[Vif]:
        """Binds a port to the host and plugs it; returns the server's ports."""
        return self._order(
            "plug_port",
            list[Vif],
            self.attach_interface,
            context,
            host,
            token,
            since=versions.ALL_ORDERS_RPC,
            instance=instance,
            port_id=port_id,
        )

    def unplug_port(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, vif: Vif
    ) -> None:
        """Takes a port from the guest, if it has it; raises GuestFailed if the guest keeps it."""
        self._order(
            "unplug_port",
            NOTHING,
            self.detach_interface,
            context,
            host,
            token,
            since=versions.ALL_ORDERS_RPC,
            instance=instance,
            vif=vif,
        )

    def attach_volume(
        self, context: RequestContext, host: str, *, instance: Instance, block_device: BlockDevice
    ) -> BlockDevice:
        return self._rpc.call(
            context,
            "attach_volume",
            result=BlockDevice,
            server=host,
            monitor=True,
            instance=instance,
            block_device=block_device,
        )

    def detach_volume(
        self, context: RequestContext, host: str, *, instance: Instance, block_device: BlockDevice
    ) -> None:
        self._rpc.call(
            context,
            "detach_volume",
            result=NOTHING,
            server=host,
            monitor=True,
            instance=instance,
            block_device=block_device,
        )

    def attach_interface(self, context: RequestContext, host: str, *, instance: Instance, port_id: str) -> list[Vif]:
        return self._rpc.call(
            context,
            "attach_interface",
            result=list[Vif],
            server=host,
            monitor=True,
            instance=instance,
            port_id=port_id,
        )

    def detach_interface(self, context: RequestContext, host: str, *, instance: Instance, vif: Vif) -> None:
        self._rpc.call(
            context, "detach_interface", result=NOTHING, server=host, monitor=True, instance=instance, vif=vif
        )
