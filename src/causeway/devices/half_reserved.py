"""Volumes that are reserved, and that nobody has: the volume service was killed in the middle of a reservation.

It commits the volume's state before the attachment. From then on it refuses every attachment of the volume, and its owner can't
delete it. A reservation that is under way looks the same, so one is taken for abandoned only if it stays so for `SETTLED_AFTER`.
"""

from __future__ import annotations

import logging
from threading import Event
from typing import Any

from causeway import errors
from causeway.context import RequestContext
from causeway.model.instance import Instance
from causeway.running.server_run import ServerRun
from causeway.running.services import ConductorServices

LOG = logging.getLogger(__name__)

# Seconds: many times what the volume service needs from one transaction to the next.
SETTLED_AFTER = 2.0
RESERVED = "reserved"


def is_in_doubt(run: ServerRun[Any]) -> bool:
    """Whether the volume service may have been killed in what the operation asked it for. It was not if it refused that."""
    if run.saga.error is None:
        return True
    failure = errors.from_wire(run.saga.error)
    return failure.passes_by_itself or isinstance(failure, errors.Interrupted)


def end(services: ConductorServices, context: RequestContext, instance: Instance, volume_id: str) -> None:
    """A volume that is reserved for nobody becomes available. Call this where a reservation for the server had no answer."""
    if not _is_half_reserved(services, context, instance, volume_id):
        return
    Event().wait(SETTLED_AFTER)
    if not _is_half_reserved(services, context, instance, volume_id):
        return
    LOG.warning("Volume %s is reserved for nobody: it is made available", volume_id)
    try:
        services.volumes.reset_to_available(context, volume_id)
    except (errors.Forbidden, errors.ServiceRefused, errors.InvalidVolume) as refusal:
        # Our account may be no administrator there. The audit finds the volume.
        LOG.warning("Volume %s stays reserved for nobody: %s", volume_id, refusal.message)


def _is_half_reserved(services: ConductorServices, context: RequestContext, instance: Instance, volume_id: str) -> bool:
    try:
        volume = services.volumes.show_any(volume_id)
    except errors.VolumeNotFound:
        return False
    # A user may have named a volume of somebody else's.
    is_ours = volume.project_id == instance.project_id
    return is_ours and volume.status == RESERVED and not services.volumes.attachments_of(context, volume_id)
