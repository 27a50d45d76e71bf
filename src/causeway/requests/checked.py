"""Checks that accepted work uses only what its user was allowed to have when it was accepted.

Hosts and ports are served with our own credentials, which may use every image and every network. So before a host is ordered to
fetch an image, and before a port is made or given to a server, the id must be among those that are kept with the operation. One
that is not is looked at with the user's token now; without a valid token, the work fails. Earlier releases kept no ids: what they
accepted is not checked again. Neither is what the API has checked just before, for an attach that its user waits for.
"""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.network import RequestedNetwork
from causeway.running.services import ConductorServices


def require_image(services: ConductorServices, context: RequestContext, image_id: str) -> None:
    """Raises ImageNotFound, Forbidden or Unauthorized if the user may not use the image."""
    if image_id and not _is_checked(context, image_id):
        services.images.show(context, image_id)


def require_network(
    services: ConductorServices, context: RequestContext, project_id: str, wanted: RequestedNetwork
) -> None:
    """Raises BadRequest, Forbidden or Unauthorized if the user may not use the port, or the network if no port is named."""
    named = wanted.port_id or wanted.network_id
    if named is None or _is_checked(context, named):
        return
    if wanted.port_id is not None:
        services.network.port_of_user(context, wanted.port_id)
    elif not services.network.list_networks(context, project_id, [named], external=True):
        raise errors.BadRequest(f"Network {named} could not be found.")


def _is_checked(context: RequestContext, thing: str) -> bool:
    return context.work is None or thing in context.work
