"""Orders about volumes and ports of existing guests.

Each order is carried out once for its operation. The former calls, without a token, are for hosts of an older version.
"""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.outcomes import MoveToken
from causeway.model.pci import InstancePCIRequest, PciDevice
from causeway.rpc.declare import Client, call


def _no_port_devices(host: str, _call: str) -> errors.NotImplementedHere:
    return errors.NotImplementedHere(
        f"Host {host} can't attach ports that need a device yet: its compute service is of an earlier release, or an upgrade"
        " level holds it to one. Ask your cloud's administrator."
    )


class DeviceCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`.

    Each order raises TakenOver if another conductor owns the operation, and ClaimRefused if the operation has undone it since.
    """

    @call(since="1.0", monitor=True)
    def attach_volume(
        self, context: RequestContext, host: str, *, instance: Instance, block_device: BlockDevice
    ) -> BlockDevice: ...

    @call(since="1.0", monitor=True)
    def detach_volume(
        self, context: RequestContext, host: str, *, instance: Instance, block_device: BlockDevice
    ) -> None: ...

    @call(since="1.0", monitor=True)
    def attach_interface(
        self, context: RequestContext, host: str, *, instance: Instance, port_id: str
    ) -> list[Vif]: ...

    @call(since="1.0", monitor=True)
    def detach_interface(self, context: RequestContext, host: str, *, instance: Instance, vif: Vif) -> None: ...

    @call(since="1.4", monitor=True, formerly=attach_volume)
    def connect_volume(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, block_device: BlockDevice
    ) -> BlockDevice:
        """Connects a volume to the host and attaches it to the guest. Returns how it is connected."""

    @call(since="1.4", monitor=True, formerly=detach_volume)
    def disconnect_volume(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, block_device: BlockDevice
    ) -> None:
        """Detaches a volume from the guest, if it has it, and disconnects it. Raises GuestFailed if the guest keeps it."""

    @call(since="1.13", monitor=True, too_old=_no_port_devices)
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

    @call(since="1.4", monitor=True, formerly=attach_interface)
    def plug_port(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, port_id: str
    ) -> list[Vif]:
        """Binds a port to the host and attaches it. Returns the server's ports."""

    @call(since="1.4", monitor=True, formerly=detach_interface)
    def unplug_port(
        self, context: RequestContext, host: str, *, token: MoveToken, instance: Instance, vif: Vif
    ) -> None:
        """Detaches a port from the guest, if it has it. Raises GuestFailed if the guest keeps it."""
