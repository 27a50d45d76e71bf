"""The last changes of the disks, after the guest is off: sent directly from host to host, as the rounds before, or as images."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

from causeway import errors
from causeway.moves.dead_hosts import answering, at_source
from causeway.moves.move_run import Run
from causeway.moves.steps.images import make_images, note_images
from causeway.store.cell import hosts
from causeway.virt.driver import ROOT_DISK

LOG = logging.getLogger(__name__)


def is_direct(run: Run) -> bool:
    """Whether the source offers its disks to the target, so that no images are needed: inside a cell always."""
    if not run.memory.is_cross_cell:
        return True
    if run.memory.shared and not run.memory.carries_firmware and not run.memory.keeps_memory:
        # Nothing travels.
        return True
    warm = run.memory.warm
    return warm is not None and warm.is_direct and bool(run.services.conf.moves.direct == "auto")


def require_own_address(run: Run, method: str, url: str) -> None:
    """Raises AnswerRefused if the source offers its disks at an address that is not its own.

    The target would send a secret there, read, and delete.
    """
    host, named = run.memory.source_host, urlsplit(url).hostname
    if host not in run.addresses:
        node = next(iter(hosts.list_nodes(run.source_database, host=host)), None)
        run.addresses[host] = node.host_ip if node is not None else None
    if named is None or named != run.addresses[host]:
        raise errors.AnswerRefused(host, method, f"the address {named}; recorded is {run.addresses[host]}")


def send_offered(run: Run, step: str, failure: errors.CausewayError) -> None:
    """Has the source send the offered disks through the image service, because the target can't fetch them."""
    LOG.info("The last changes of move %s go through the image service: %s", run.move.id, failure.details)
    memory = run.memory
    # The images are noted first: if this attempt is interrupted and the target fetches the offer in the next one, they are
    # deleted all the same.
    note_images(run)
    run.save()
    make_images(run)
    run.save()
    image_ids = memory.disk_image_ids | ({ROOT_DISK: memory.image_id} if memory.image_id is not None else {})
    with answering(run, at_source):
        sent = run.source_computes.send_offered(
            run.context,
            memory.source_host,
            token=run.token(step),
            instance=run.source_instance(),
            image_ids=image_ids,
        )
    memory.snapshot, memory.disks, memory.offer = sent.pop(ROOT_DISK, None), sent, None
    run.save()


def wipe_secret(run: Run) -> None:
    """Deletes the secret of the source's offer from the memory. Called when the target has the guest."""
    if run.memory.offer is not None:
        run.memory.offer.token = ""
