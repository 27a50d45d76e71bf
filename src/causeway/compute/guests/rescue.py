"""Rescue: a guest boots a disk made from an image, with its own disks beside it.

Nothing here writes or deletes the server's own disks; the guest only has them or not. The order decides what a guest boots, or
the server's record if the guest is started in another way (`of_record`). The files on the host never decide it.
"""

from __future__ import annotations

import logging

from causeway import errors
from causeway.compute.guests import guest
from causeway.compute.host import Host
from causeway.compute.host.fence import fenced
from causeway.compute.host.transfer_progress import TransferProgress
from causeway.context import RequestContext
from causeway.model import rescue as records
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome, OperationToken
from causeway.model.rescue import RescueImage
from causeway.model.states import VmState
from causeway.virt.driver import Rescue

LOG = logging.getLogger(__name__)


class RescueEndpoint:
    """RPC: rescue_guest and undo_rescue; unrescue_guest and undo_unrescue; delete_rescue_disk."""

    def __init__(self, host: Host) -> None:
        self.fence = host.fence
        self._host = host

    @fenced
    def rescue_guest(
        self,
        context: RequestContext,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        image: RescueImage,
    ) -> GuestOutcome:
        """Checks everything before the guest is powered off."""
        host = self._host
        with host.lock(instance.uuid):
            progress = TransferProgress(host, context, token, is_joined=True)
            # Placement knows of no rescue disks, so one is at most as large as the server's own root disk.
            base = host.image_cache.fetch(context, image.image_id, progress, most_gb=instance.flavor.root_gb)
            rescue = Rescue(image, base)
            vifs = guest.refreshed_ports(host, context, instance)
            with guest.connected_volumes(host, context, block_devices) as volumes:
                spec = guest.spec_of(host, context, instance, vifs, volumes, block_devices=block_devices, rescue=rescue)
                host.driver.prepare_rescue(spec)
                self._power_off(instance)
                power_state = host.driver.power_on(spec)
            outcome = guest.outcome_of(host, instance, power_state, vifs, volumes)
            outcome.bytes_done = progress.bytes_done
            return outcome

    @fenced
    def undo_rescue(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        block_devices: list[BlockDevice],
        power_on: bool,
    ) -> None:
        host = self._host
        with host.lock(instance.uuid):
            if not host.driver.has_rescue_disk(instance.uuid):
                # The guest was not touched.
                return
            self._start_from_own_disk(context, instance, block_devices, power_on=power_on)
            host.driver.delete_rescue_disk(instance.uuid)

    @fenced
    def unrescue_guest(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        """Starts the guest from its own disk. The rescue disk stays, for `undo_unrescue`."""
        with self._host.lock(instance.uuid):
            return self._start_from_own_disk(context, instance, block_devices, power_on=True)

    @fenced
    def undo_unrescue(
        self,
        context: RequestContext,
        *,
        token: OperationToken,  # noqa: ARG002
        instance: Instance,
        block_devices: list[BlockDevice],
        image: RescueImage,
    ) -> None:
        host = self._host
        with host.lock(instance.uuid):
            if not host.driver.has_rescue_disk(instance.uuid):
                LOG.warning("Server %s can't be rescued again: its rescue disk is gone", instance.uuid)
                return
            if not host.driver.is_rescued(instance.uuid):
                self._power_off(instance)
            vifs = guest.refreshed_ports(host, context, instance)
            with guest.connected_volumes(host, context, block_devices) as volumes:
                host.driver.power_on(
                    guest.spec_of(
                        host, context, instance, vifs, volumes, block_devices=block_devices, rescue=Rescue(image)
                    )
                )

    @fenced
    def delete_rescue_disk(self, context: RequestContext, *, token: OperationToken, instance: Instance) -> None:  # noqa: ARG002
        with self._host.lock(instance.uuid):
            self._host.driver.delete_rescue_disk(instance.uuid)

    def _start_from_own_disk(
        self, context: RequestContext, instance: Instance, block_devices: list[BlockDevice], *, power_on: bool
    ) -> GuestOutcome:
        """Starts the guest from its own disk, unless it runs from it already.

        ``power_on`` False: defines it, and leaves it off.
        """
        host = self._host
        if host.driver.is_rescued(instance.uuid):
            self._power_off(instance)
        vifs = guest.refreshed_ports(host, context, instance)
        with guest.connected_volumes(host, context, block_devices) as volumes:
            spec = guest.spec_of(host, context, instance, vifs, volumes, block_devices=block_devices, power_on=power_on)
            return guest.outcome_of(host, instance, host.driver.power_on(spec), vifs, volumes)

    def _power_off(self, instance: Instance) -> None:
        driver = self._host.driver
        if driver.inspect(instance.uuid).power_state is not None:
            driver.power_off(instance.uuid, self._host.shutdown_timeout(instance))


def of_record(instance: Instance) -> Rescue | None:
    """The rescue disk that the guest boots according to its record; None if it boots its own disk."""
    image = records.of_record(instance.system_metadata)
    return Rescue(image) if instance.vm_state is VmState.RESCUED and image is not None else None


def discard_stale(host: Host, instance: Instance) -> None:
    """Deletes the rescue disk of a server that has booted from its own, because its state was reset while it was rescued."""
    driver = host.driver
    if of_record(instance) is not None or not driver.has_rescue_disk(instance.uuid):
        return
    try:
        driver.delete_rescue_disk(instance.uuid)
    except errors.GuestFailed as failure:
        LOG.info("The rescue disk of server %s stays: %s", instance.uuid, failure.message)
