"""The functions with which the API requests an operation."""

from __future__ import annotations

import logging
from typing import Protocol

from causeway import errors
from causeway.clients.image import ImageClient
from causeway.context import RequestContext
from causeway.model import operations
from causeway.model.instance import Instance
from causeway.model.operation_kinds import recipes_where
from causeway.model.operations import Operation
from causeway.model.sagas import SagaState
from causeway.operations.delete import DeleteMemory, mark
from causeway.requests import requesters
from causeway.requests.asking import operation_of
from causeway.requests.of_servers import RequestServices, notify_conductor, run_waiting
from causeway.store.api import deletions, journal, wanted_operations
from causeway.store.database import Database

LOG = logging.getLogger(__name__)

_MAKING_IMAGES = recipes_where(lambda kind: kind.makes_image)


class HasImages(Protocol):
    @property
    def images(self) -> ImageClient: ...


class HasJournalAndImages(HasImages, Protocol):
    @property
    def api(self) -> Database: ...


def ask_for_delete(services: RequestServices, context: RequestContext, instance: Instance, cell_uuid: str) -> None:
    """Requests the delete of a server, and notifies a conductor. Does nothing if the server is being deleted already."""
    operation = operation_of(context, instance.uuid, operations.DELETE, DeleteMemory())
    if not deletions.ask(services.api, operation, requesters.requester_of(services.conf, context, instance.uuid)):
        return
    try:
        mark(services.cells, context, instance, cell_uuid)
    except errors.CausewayError as failure:
        LOG.info("Server %s gets its task a little later: %s", instance.uuid, failure.message)
    notify_conductor(services, context, operation)
    if instance.task_state is not None:
        # Wakes the operation that works on the server: otherwise it would notice only when its pause is over.
        run_waiting(services, instance.uuid, but=operation.id)


def cancel(services: RequestServices, instance_uuid: str, migration_uuid: str) -> bool:
    """Cancels a server's operation, which is then rolled back. Returns False if it is too late for that.

    ``migration_uuid``: of the operation's migration, or the operation's own id if it has none.
    """
    if not wanted_operations.request_cancel(services.api, migration_uuid):
        return False
    # Wakes the operation, which would notice only when its pause is over. The action of its own request records the outcome.
    run_waiting(services, instance_uuid)
    return True


def discard_prepared(services: HasJournalAndImages, context: RequestContext, operation: Operation) -> None:
    """Deletes the image whose record was made for a refused request, if there is one.

    An API process that was refused because it was slow tries again with the same image.
    """
    image_id = operation.data.get("image_id")
    if image_id is None or operation.recipe not in _MAKING_IMAGES:
        return
    others = (other for other in journal.of_server(services.api, operation.instance_uuid) if other.id != operation.id)
    if not any(other.data.get("image_id") == image_id and other.state is not SagaState.REFUSED for other in others):
        discard_image(services, context, image_id)


def discard_image(services: HasImages, context: RequestContext, image_id: str) -> None:
    """Deletes an image that has no data. An image with data stays: it may be the only copy of a server's disk."""
    try:
        status = services.images.show_of_server(context, image_id).status
    except errors.ImageNotFound:
        return
    if status == "queued":
        services.images.delete(context, image_id)
    else:
        LOG.warning("Image %s is %s: it is not deleted with the request that made it", image_id, status)
