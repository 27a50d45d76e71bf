"""``/os-causeway/drains``: moves many servers out of a scope. Ours; the Compute API has no such resource.

A drain is a `causeway.model.drains.Drain`; it is planned when it is made, and begins when it is started. What conductors do then
is in `causeway.drains`.
"""

from __future__ import annotations

import uuid as uuids
from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from causeway import errors
from causeway.api import paging
from causeway.api.answers import ours
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import drains as schemas
from causeway.api.validation import is_uuid
from causeway.decoding import all_fields
from causeway.drains import ends
from causeway.model.drains import (
    AT_REST,
    Afterwards,
    Drain,
    DrainRequest,
    DrainServerState,
    DrainState,
    Plan,
)
from causeway.store.api import drains as store
from causeway.store.database import utcnow

RULE = "causeway:drains:"


@handler(query=schemas.LIST, answer=ours.DRAINS)
def index(request: ApiRequest) -> Response:
    """A page of the drains, newest first."""
    request.authorize(RULE + "index")
    states = [DrainState(state) for state in request.query.get("state", [])]
    try:
        found = store.search(
            request.services.api,
            states=states or None,
            marker=request.param("marker"),
            limit=paging.limit_of(request),
        )
    except errors.NotFound:
        raise errors.BadRequest(f"Marker {request.param('marker')} could not be found.") from None
    entries = [_view(request, drain) for drain in found]
    body: dict[str, Any] = {"drains": entries}
    if links := paging.next_link(request, "/os-causeway/drains", entries, entries[-1]["id"] if entries else None):
        body["drains_links"] = links
    return Response(200, body)


@handler(body=schemas.CREATE, statuses=(201,), answer=ours.NEW_DRAIN)
def create(request: ApiRequest) -> Response:
    """Plans a drain and stores it with its plan. Nothing moves before it is started."""
    request.authorize(RULE + "create")
    wanted = _wanted(request)
    plan = request.services.conductor.plan_drain(request.context, request=wanted)
    drain = Drain(
        id=str(uuids.uuid4()),
        request=wanted,
        user_id=request.context.user_id,
        project_id=request.context.project_id,
        request_id=request.context.request_id,
    )
    for server in plan.servers:
        server.drain_id = drain.id
    store.create(request.services.api, drain, plan.servers)
    request.services.notifier.drain(request.context, drain, "create")
    return Response(201, {"drain": _view(request, drain), "plan": _plan(plan, with_servers=False)})


@handler(body=schemas.CREATE, answer=ours.PLAN)
def plan(request: ApiRequest) -> Response:
    """A dry run: what a drain would do with each of its servers."""
    request.authorize(RULE + "create")
    found = request.services.conductor.plan_drain(request.context, request=_wanted(request))
    return Response(200, {"plan": _plan(found, with_servers=True)})


@handler(answer=ours.DRAIN)
def show(request: ApiRequest, drain_id: str) -> Response:
    return Response(200, {"drain": _view(request, _find(request, drain_id, "show"))})


@handler(query=schemas.LIST_SERVERS, answer=ours.SERVERS_OF_DRAIN)
def index_of_servers(request: ApiRequest, drain_id: str) -> Response:
    """A page of a drain's servers, sorted by their ids."""
    _find(request, drain_id, "show")
    states = [DrainServerState(state) for state in request.query.get("state", [])]
    marker = request.param("marker")
    if marker is not None and not store.has_server(request.services.api, drain_id, marker):
        raise errors.BadRequest(f"Marker {marker} could not be found.")
    found = store.servers(
        request.services.api,
        drain_id,
        states=states or None,
        marker=marker,
        limit=paging.limit_of(request),
    )
    entries = [all_fields(server) for server in found]
    body: dict[str, Any] = {"servers": entries}
    path, last = f"/os-causeway/drains/{drain_id}/servers", found[-1].instance_uuid if found else None
    if links := paging.next_link(request, path, entries, last):
        body["servers_links"] = links
    return Response(200, body)


@handler(body=schemas.UPDATE, answer=ours.DRAIN)
def update(request: ApiRequest, drain_id: str) -> Response:
    """Changes limits of a drain, also while it runs. Limits that are not named stay as they are."""
    _find(request, drain_id, "update")
    changed = store.revise_limits(request.services.api, drain_id, request.body["drain"]["limits"])
    _notify(request, changed, "update")
    return Response(200, {"drain": _view(request, changed)})


@handler(statuses=(204,), answer=EMPTY)
def delete(request: ApiRequest, drain_id: str) -> Response:
    """Deletes the record of a drain that has ended, or never began. What it moved stays where it is."""
    drain = _find(request, drain_id, "delete")
    if drain.state not in AT_REST or not store.delete(request.services.api, drain_id):
        raise errors.Conflict(f"Drain {drain_id} is {drain.state}: cancel it first.")
    request.services.notifier.drain(request.context, drain, "delete")
    return Response(204)


@handler(body=schemas.bare("start"), statuses=(202,), answer=ours.DRAIN)
def start(request: ApiRequest, drain_id: str) -> Response:
    drain = _find(request, drain_id, "action")
    if drain.state is not DrainState.PLANNED:
        raise errors.Conflict(f"Drain {drain_id} is {drain.state}: only a planned one can be started.")
    return _transit(request, drain_id, DrainState.RUNNING, "start", before=DrainState.PLANNED, started_at=utcnow())


@handler(body=schemas.bare("pause"), statuses=(202,), answer=ours.DRAIN)
def pause(request: ApiRequest, drain_id: str) -> Response:
    """Pauses a drain: no move begins any more, and those under way are completed."""
    _find(request, drain_id, "action")
    return _transit(request, drain_id, DrainState.PAUSED, "pause", note="It was paused on request.")


@handler(body=schemas.bare("resume"), statuses=(202,), answer=ours.DRAIN)
def resume(request: ApiRequest, drain_id: str) -> Response:
    drain = _find(request, drain_id, "action")
    if drain.state is not DrainState.PAUSED:
        raise errors.Conflict(f"Drain {drain_id} is {drain.state}: only a paused one can be resumed.")
    return _transit(request, drain_id, DrainState.RUNNING, "resume", before=DrainState.PAUSED, note=None)


@handler(body=schemas.CANCEL, statuses=(202,), answer=ours.DRAIN)
def cancel(request: ApiRequest, drain_id: str) -> Response:
    """Ends a drain, and opens the hosts that it had closed. Moves under way are completed, or undone (``undo``)."""
    drain = _find(request, drain_id, "action")
    undo = bool((request.body["cancel"] or {}).get("undo", False))
    if drain.state is DrainState.PLANNED:
        return _transit(request, drain_id, DrainState.CANCELLED, "cancel", before=drain.state, ended_at=utcnow())
    return _transit(request, drain_id, DrainState.CANCELLING, "cancel", undo=undo)


@handler(body=schemas.bare("rollback"), statuses=(202,), answer=ours.DRAIN)
def roll_back(request: ApiRequest, drain_id: str) -> Response:
    """As `cancel` with ``undo``; moves that wait to be confirmed are reverted, too."""
    _find(request, drain_id, "action")
    return _transit(request, drain_id, DrainState.ROLLING_BACK, "rollback", undo=True, ended_at=None)


def _find(request: ApiRequest, drain_id: str, verb: str) -> Drain:
    request.authorize(RULE + verb)
    if not is_uuid(drain_id):
        raise errors.NotFound(f"Drain {drain_id} could not be found.")
    return store.get(request.services.api, drain_id)


def _transit(request: ApiRequest, drain_id: str, state: DrainState, action: str, **changes: Any) -> Response:
    changed = store.transit(request.services.api, drain_id, state, **changes)
    _notify(request, changed, action)
    return Response(202, {"drain": _view(request, changed)})


def _notify(request: ApiRequest, drain: Drain, action: str) -> None:
    request.services.notifier.drain(request.context, drain, action)
    request.services.conductor.look_at_drains(request.context)


def _wanted(request: ApiRequest) -> DrainRequest:
    """The request for a drain. Raises BadRequest for what no schema can check."""
    # Today's defaults are written out: the release that carries the drain out may have others.
    wanted = msgspec.convert(all_fields(msgspec.convert(request.body["drain"], DrainRequest)), DrainRequest)
    for window in wanted.windows:
        try:
            ZoneInfo(window.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise errors.BadRequest(f"windows: There is no time zone {window.zone}.") from None
    if not any(msgspec.to_builtins(wanted.scope).values()):
        raise errors.BadRequest("scope: It is empty. Name cells, hosts, aggregates, zones, projects or servers.")
    if (wanted.afterwards is Afterwards.CONFIRM_LATER) != (wanted.confirm_after is not None):
        raise errors.BadRequest("confirm_after belongs to afterwards: confirm_later, which needs it.")
    if wanted.deadline is not None:
        aware = wanted.deadline if wanted.deadline.tzinfo is not None else wanted.deadline.replace(tzinfo=UTC)
        if aware.astimezone(UTC).replace(tzinfo=None) <= utcnow():
            raise errors.BadRequest(f"deadline: {wanted.deadline.isoformat()} is over.")
    return wanted


def _view(request: ApiRequest, drain: Drain) -> dict[str, Any]:
    """The drain, with the numbers of its servers by state, the bytes of those that were moved, and when it may end."""
    progress = store.progress(request.services.api, drain.id)
    ends.estimate(drain, progress, utcnow())
    shown = all_fields(drain) | {"name": drain.name, "progress": all_fields(progress)}
    if drain.pacing is not None:
        # Only conductors need it.
        del shown["pacing"]["sent"]
    return shown


def _plan(found: Plan, *, with_servers: bool) -> dict[str, Any]:
    shown = all_fields(found)
    if not with_servers:
        del shown["servers"]
    return shown
