"""Pausing and suspending guests, and images of their disks."""

from __future__ import annotations

from causeway import errors
from causeway.compute.guests import guest
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState, VmState


class GuestStatesEndpoint:
    """RPC: pause, unpause, suspend, resume, snapshot."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def pause_instance(self, context: RequestContext, *, instance: Instance) -> PowerState:  # noqa: ARG002
        with self._host.lock(instance.uuid):
            self._host.driver.pause(instance.uuid)
        return PowerState.PAUSED

    def unpause_instance(self, context: RequestContext, *, instance: Instance) -> PowerState:  # noqa: ARG002
        with self._host.lock(instance.uuid):
            self._host.driver.unpause(instance.uuid)
        return PowerState.RUNNING

    def suspend_instance(self, context: RequestContext, *, instance: Instance) -> PowerState:  # noqa: ARG002
        with self._host.lock(instance.uuid):
            self._host.driver.suspend(instance.uuid)
        # As hypervisors show it: the guest does not run, its memory is in a file.
        return PowerState.SHUTDOWN

    def resume_instance(
        self, context: RequestContext, *, instance: Instance, block_devices: list[BlockDevice]
    ) -> GuestOutcome:
        host = self._host
        with host.lock(instance.uuid):
            vifs = guest.refreshed_ports(host, context, instance)
            with guest.connected_volumes(host, context, block_devices) as volumes:
                power_state = host.driver.resume(
                    guest.spec_of(host, instance, vifs, volumes, block_devices=block_devices)
                )
            return GuestOutcome(power_state, vifs, volumes)

    def snapshot_instance(self, context: RequestContext, *, instance: Instance, image_id: str) -> None:
        host, driver, uuid = self._host, self._host.driver, instance.uuid
        with host.lock(uuid):
            state = driver.inspect(uuid).power_state
            # Paused by an attempt before, which was broken off: what its user paused is PAUSED in the record.
            was_left = state is PowerState.PAUSED and instance.vm_state is VmState.ACTIVE
            runs = was_left or state is PowerState.RUNNING
            if runs and not was_left:
                driver.pause(uuid)
            try:
                export = driver.export_disk(instance, "disk", flatten=True)
                disk = export.__enter__()
            finally:
                # The copy is made: the guest need not wait for the upload.
                if runs:
                    driver.unpause(uuid)
            try:
                host.images.upload(context, image_id, disk.path, disk.size)
            except errors.ServiceRefused:
                # Uploaded by an earlier attempt whose answer was lost.
                if host.images.show(context, image_id).status != "active":
                    raise
            finally:
                export.__exit__(None, None, None)
