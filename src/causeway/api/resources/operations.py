"""``/os-causeway/operations`` and ``/os-causeway/servers/{server_id}/operations``: the progress of everything that takes long.

Ours; the Compute API has no such resource. An operation is shown as a `causeway.model.progress.OperationProgress`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from causeway import errors
from causeway.api import paging
from causeway.api.answers import ours
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import operations as schemas
from causeway.api.validation import is_uuid
from causeway.model.operations import Operation
from causeway.model.progress import progress_of, version_of, why_not_cancellable
from causeway.model.sagas import ENDED, SagaState
from causeway.operations import requests
from causeway.store.api import mappings
from causeway.store.api import operations as store

RULE = "causeway:operations:"
SERVER_RULE = "causeway:servers:operations:"


@handler(query=schemas.LIST, answer=ours.OPERATIONS)
def index(request: ApiRequest) -> Response:
    """A page of the operations of all servers, newest first. Ended ones are included with ``all=1``."""
    request.authorize(RULE + "index")
    state = request.param("state")
    return _page(
        request,
        "/os-causeway/operations",
        instance_uuid=request.param("server"),
        recipes=request.query.get("recipe"),
        state=None if state is None else SagaState(state),
        host=request.param("host"),
        owner=request.param("owner"),
    )


@handler(query=schemas.OF_SERVER, answer=ours.OPERATIONS)
def index_of_server(request: ApiRequest, server_id: str) -> Response:
    """A page of the operations of a server, newest first. Ended ones are included with ``all=1``."""
    if not is_uuid(server_id):
        raise errors.ServerNotFound(server_id)
    _authorize(request, server_id, SERVER_RULE + "index", errors.ServerNotFound(server_id))
    page = _page(request, f"/os-causeway/servers/{server_id}/operations", instance_uuid=server_id)
    if not page.body["operations"]:
        # Raises ServerNotFound if there is no such server.
        mappings.get(request.services.api, server_id)
    return page


@handler(query=schemas.SHOW, answer=ours.OPERATION)
def show(request: ApiRequest, operation_id: str) -> Response:
    """One operation. With ``wait`` (seconds) and ``seen`` (its version) the answer waits until something is new."""
    _find(request, operation_id, "show")
    seen, wait = request.param("seen"), int(request.param("wait") or 0)

    def is_new() -> bool:
        found = store.get(request.services.api, operation_id)
        return found.state in ENDED or version_of(found) != seen

    if wait and seen is not None and not is_new():
        request.services.long_polls.wait(is_new, wait)
    found = store.get(request.services.api, operation_id)
    return Response(200, {"operation": msgspec.to_builtins(progress_of(found, request.services.now_of_transfers()))})


@handler(statuses=(202,), answer=EMPTY)
def cancel(request: ApiRequest, operation_id: str) -> Response:
    """Cancels an operation that can still be undone, and undoes it."""
    found = _find(request, operation_id, "cancel")
    if found.state in ENDED or not requests.cancel(request.services, found.instance_uuid, found.migration_uuid):
        refusal = why_not_cancellable(store.get(request.services.api, operation_id))
        raise errors.Conflict(refusal or f"Operation {operation_id} could not be cancelled; try again.")
    return Response(202)


def _find(request: ApiRequest, operation_id: str, verb: str) -> Operation:
    missing = errors.NotFound(f"Operation {operation_id} could not be found.")
    if not is_uuid(operation_id):
        raise missing
    found = store.get(request.services.api, operation_id)
    _authorize(request, found.instance_uuid, RULE + verb, missing)
    return found


def _authorize(request: ApiRequest, server_id: str, rule: str, missing: errors.CausewayError) -> None:
    """Raises ``missing`` if the caller may not know of the server, Forbidden if they may not do that."""
    if request.context.is_admin:
        # Also if the server's mapping is lost.
        request.authorize(rule, {})
        return
    try:
        mapping = mappings.get(request.services.api, server_id)
    except errors.ServerNotFound:
        raise missing from None
    if mapping.project_id != request.project_id:
        raise missing
    request.context.resource_uuid = server_id
    request.authorize(rule, {"project_id": mapping.project_id, "user_id": mapping.user_id})


def _page(request: ApiRequest, path: str, **conditions: Any) -> Response:
    try:
        found = store.search(
            request.services.api,
            with_ended=request.param("all") == "1",
            marker=request.param("marker"),
            limit=paging.limit_of(request),
            **conditions,
        )
    except errors.NotFound:
        raise errors.BadRequest(f"Marker {request.param('marker')} could not be found.") from None
    now = request.services.now_of_transfers()
    entries = [msgspec.to_builtins(progress_of(operation, now)) for operation in found]
    body: dict[str, Any] = {"operations": entries}
    if links := paging.next_link(request, path, entries, entries[-1]["id"] if entries else None):
        body["operations_links"] = links
    return Response(200, body)
