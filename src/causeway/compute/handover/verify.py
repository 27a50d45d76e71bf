"""Checks that this host's copy of a server is whole, before the other copy is destroyed."""

from __future__ import annotations

from causeway import errors
from causeway.compute.disks.wanted_disks import local_disks
from causeway.compute.guests import guest
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.instance import Instance
from causeway.virt.driver import ROOT_DISK, ExpectedDisk, GuestFacts

_MIB_PER_GIB = 1024


class VerifyEndpoint:
    """RPC: verify_server. It changes nothing, so it needs no token."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def verify_server(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        instance: Instance,
        block_devices: list[BlockDevice],
        stashed: bool,
    ) -> GuestFacts:
        """Checks this host's copy of the server. Raises CopyNotUsable, with the reasons in its details, if it is not whole."""
        host = self._host
        with host.lock(instance.uuid):
            facts = host.driver.inspect(instance.uuid)
            if not stashed and facts.power_state is None:
                raise errors.CopyNotUsable(
                    "The hypervisor does not know the server's guest.", details=f"host {host.name}"
                )
            require_disks(host, instance, block_devices, stashed=stashed)
        return facts


def require_disks(host: Host, instance: Instance, block_devices: list[BlockDevice], *, stashed: bool) -> None:
    """Raises CopyNotUsable unless every disk that the records name is here and usable. ``stashed``: checks the stashed disks."""
    volumes = [device.volume_id for device in guest.volumes_of(block_devices) if device.volume_id is not None]
    faults = host.driver.copy_faults(
        instance.uuid, expected_disks(host, instance, block_devices), volumes, stashed=stashed
    )
    if faults:
        what = "stashed disks" if stashed else "disks"
        raise errors.CopyNotUsable(
            "Disks of the server are missing or damaged.", details=f"host {host.name}, {what}: {'; '.join(faults)}"
        )


def expected_disks(host: Host, instance: Instance, block_devices: list[BlockDevice]) -> list[ExpectedDisk]:
    """Returns the local disks that the records name. The config drive is not one of them: each start makes it anew."""
    found = [ExpectedDisk(local.name, local.size_mb) for local in local_disks(host.conf, block_devices)]
    if not is_volume_backed(block_devices):
        found.insert(0, ExpectedDisk(ROOT_DISK, instance.flavor.root_gb * _MIB_PER_GIB))
    return found
