"""Uploads the root disk of a guest as an image."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, ExitStack

from causeway import errors
from causeway.compute.guests import running_disk
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.instance import Instance
from causeway.model.states import PowerState
from causeway.virt.driver import ROOT_DISK, DiskExport, Driver, Progress, no_progress

LOG = logging.getLogger(__name__)


def upload(
    host: Host, context: RequestContext, instance: Instance, image_id: str, progress: Progress = no_progress
) -> int:
    """Uploads the whole root disk as it is at one instant into an existing image. The guest continues to run.

    Returns the size of the image in bytes. If it was uploaded before, sends nothing.

    The guest is locked only while its disk is copied. The copy is a separate file with the whole disk. It is uploaded whatever
    happens to the guest meanwhile, even if the guest and its disks are destroyed.
    """
    with ExitStack() as copied:
        with host.lock(instance.uuid):
            disk = copied.enter_context(_root_disk(host.driver, instance))
        try:
            host.images.upload(context, image_id, disk.path, disk.size, progress)
        except errors.ServiceRefused:
            # An earlier attempt, whose answer was lost, has uploaded it.
            image = host.images.show_of_server(context, image_id)
            if image.status != "active":
                raise
            return image.size
        return disk.size


def store(host: Host, context: RequestContext, instance: Instance, image_id: str, progress: Progress) -> int:
    """Powers the guest off and uploads its disk like `upload`. If the host can, it uploads most of the disk before.

    The part that is uploaded while the guest runs is read from the guest's own disk, so the guest stays locked meanwhile.
    """
    driver, uuid = host.driver, instance.uuid
    with host.lock(uuid):
        runs = driver.inspect(uuid).power_state is PowerState.RUNNING
        if runs and driver.supports_warm_copy and host.conf.moves.warm == "auto":
            try:
                return running_disk.upload_and_shut_down(host, context, instance, image_id, progress)
            except (errors.WarmCopyImpossible, errors.GuestFailed) as failure:
                LOG.info("The disk of server %s is uploaded when its guest is off: %s", uuid, failure.message)
        elif driver.supports_warm_copy:
            # Deletes the file of an attempt whose process died.
            driver.end_rounds(uuid)
        driver.power_off(uuid, host.shutdown_timeout(instance))
    return upload(host, context, instance, image_id, progress)


def _root_disk(driver: Driver, instance: Instance) -> AbstractContextManager[DiskExport]:
    uuid = instance.uuid
    if driver.inspect(uuid).power_state is PowerState.RUNNING:
        return driver.export_running_disk(instance, ROOT_DISK)
    return driver.export_disk(instance, ROOT_DISK, flatten=True)
