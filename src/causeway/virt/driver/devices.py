"""Volumes and ports of guests. All of it is optional: without it, servers on this host have no volumes, and keep their ports.

A driver that has `volume_connector` has all methods for volumes, and makes guests with volumes. Every driver makes guests with
ports (`GuestMethods.spawn`); one that has `attach_interface` has `detach_interface`.
"""

from __future__ import annotations

from typing import Any

from causeway.errors import ClaimRefused, DecryptionRefused
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.volume_keys import Passphrase
from causeway.virt.driver.support import unsupported


class DeviceMethods:
    """A part of `causeway.virt.driver.Driver`."""

    #: detaches ports that are devices of the host from running guests, and attaches them
    supports_live_port_devices: bool = False

    def volume_connector(self) -> dict[str, Any]:
        """What the volume service needs to know of this host to export a volume to it."""
        raise unsupported("connect volumes")

    def check_volume_connectable(self, connection_info: dict[str, Any]) -> None:  # noqa: ARG002
        """Raises `ClaimRefused` if this host can't open such a volume."""
        raise ClaimRefused("The hypervisor of the host can't connect volumes: its driver does not support it.")

    def check_volume_provider(self, provider: str) -> None:  # noqa: ARG002
        """Raises `DecryptionRefused` if guests here can't have volumes of an encryption provider (luks, luks2, ...)."""
        raise DecryptionRefused("The hypervisor of the host can't decrypt volumes: its driver does not support it.")

    def hold_volume_key(self, volume: BlockDevice, key: Passphrase) -> None:  # noqa: ARG002
        """Keeps the key of an encrypted volume, in memory, until the volume is disconnected.

        Called whenever a guest is about to open the volume. Raises `GuestFailed`.
        """
        raise unsupported("decrypt volumes")

    def hold_tpm_key(self, instance: Instance, passphrase: str) -> None:  # noqa: ARG002
        """Keeps the passphrase of the state of a server's TPM, in memory, until its guest is destroyed.

        Called whenever its guest is about to be made. Raises `GuestFailed`.
        """
        raise unsupported("encrypt the state of TPMs")

    def attach_volume(self, uuid: str, volume: BlockDevice) -> None:  # noqa: ARG002
        """Connects the volume to the host and gives it to the guest, whether it runs or not. No guest: it is only connected."""
        raise unsupported("attach volumes")

    def detach_volume(self, uuid: str, volume: BlockDevice) -> None:  # noqa: ARG002
        """Removes the volume from the guest and disconnects it from the host. Not attached: nothing happens.

        Raises `GuestFailed` if the guest does not release it.
        """
        if type(self).volume_connector is not DeviceMethods.volume_connector:
            raise unsupported("detach volumes")

    def extend_volume(self, uuid: str, volume: BlockDevice, size: int) -> None:  # noqa: ARG002
        """The guest sees that a volume has become larger. ``size``: in bytes, as the volume service records it.

        No guest, off, or not attached: nothing happens. Raises `GuestFailed` if the guest sees it only from its next start on.
        """
        raise unsupported("show guests that their volumes are larger")

    def port_devices(self, uuid: str) -> list[str] | None:  # noqa: ARG002
        """The MAC addresses of the ports that are devices of the host, in the guest as it runs or is defined; None: unknown."""
        return None

    def attach_interface(self, uuid: str, vif: Vif) -> None:  # noqa: ARG002
        """Plugs the port and gives it to the guest."""
        raise unsupported("attach ports")

    def detach_interface(self, uuid: str, vif: Vif) -> None:  # noqa: ARG002
        """Removes the port from the guest and unplugs it. Not attached: nothing happens.

        Raises `GuestFailed` if the guest does not release it.
        """
        raise unsupported("detach ports")
