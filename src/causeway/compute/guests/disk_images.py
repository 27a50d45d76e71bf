"""The root disk of a guest as an image."""

from __future__ import annotations

from causeway import errors
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.instance import Instance
from causeway.model.states import PowerState, VmState
from causeway.virt.driver import ROOT_DISK, Progress, no_progress


def upload(
    host: Host, context: RequestContext, instance: Instance, image_id: str, progress: Progress = no_progress
) -> int:
    """Uploads the root disk, with everything in it, into an image that is there; a running guest pauses for the copy.

    Returns how many bytes the image has. Uploaded before: nothing is sent again.
    """
    driver, uuid = host.driver, instance.uuid
    with host.lock(uuid):
        state = driver.inspect(uuid).power_state
        # Paused by an attempt before, which was broken off: what its user paused is PAUSED in the record.
        was_left = state is PowerState.PAUSED and instance.vm_state is VmState.ACTIVE
        runs = was_left or state is PowerState.RUNNING
        if runs and not was_left:
            driver.pause(uuid)
        try:
            export = driver.export_disk(instance, ROOT_DISK, flatten=True)
            disk = export.__enter__()
        finally:
            # The copy is made: the guest need not wait for the upload.
            if runs:
                driver.unpause(uuid)
        try:
            host.images.upload(context, image_id, disk.path, disk.size, progress)
        except errors.ServiceRefused:
            # Uploaded by an earlier attempt whose answer was lost.
            image = host.images.show(context, image_id)
            if image.status != "active":
                raise
            return image.size
        finally:
            export.__exit__(None, None, None)
        return disk.size
