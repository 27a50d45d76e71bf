"""What a build that failed leaves: on the host that was to make the guest, in Placement, and in the services around."""

from __future__ import annotations

import logging
from functools import partial

from causeway import errors
from causeway.context import RequestContext
from causeway.model.missed import Missed
from causeway.parts import leftovers, liveness, releasing
from causeway.parts.services import ConductorServices
from causeway.scheduler.request import Selection
from causeway.store.api.build_requests import BuildRequest

LOG = logging.getLogger(__name__)


def give_back(services: ConductorServices, context: RequestContext, request: BuildRequest) -> None:
    """Gives back what was made and claimed for the build. What can't be given back now goes when the server is deleted."""
    instance = request.instance
    release = partial(releasing.release, services, context, instance, request.block_devices)
    for one in (release, partial(services.placement.delete_allocations, instance.uuid)):
        try:
            one()
        except errors.CausewayError as failure:
            LOG.warning(
                "Server %s was not built and keeps something until it is deleted: %s", instance.uuid, failure.message
            )


def destroy_at(services: ConductorServices, context: RequestContext, request: BuildRequest, target: Selection) -> None:
    """For a host that gave no answer: it may have made the guest, or be about to. If it can't be told now, it is later."""
    instance, host, cell_uuid = request.instance, target.host, target.cell_uuid
    if liveness.of_host(services, services.cells.database(cell_uuid), host).is_up:
        try:
            services.computes(cell_uuid).destroy_instance(
                context, host, instance=instance, block_devices=request.block_devices
            )
        except errors.CausewayError as failure:
            LOG.info("Host %s was not told to destroy server %s: %s", host, instance.uuid, failure.message)
        else:
            return
    LOG.warning("Host %s may have a guest of server %s: it is told to destroy it later", host, instance.uuid)
    leftovers.note(services, host, cell_uuid, Missed.DESTROY, instance, request.block_devices)
