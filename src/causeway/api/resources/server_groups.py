"""``/os-server-groups``. Source: Compute API reference, "Server groups"."""

from __future__ import annotations

import uuid
from typing import Any

from causeway import errors
from causeway.api import paging
from causeway.api.answers import projects as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.quotas import quota
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import server_groups as schemas
from causeway.model.host import ServerGroup
from causeway.store.api import groups as store
from causeway.store.api import mappings

RULE = "os_compute_api:os-server-groups:"


def _view(request: ApiRequest, group: ServerGroup, living: set[str]) -> dict[str, Any]:
    """``living``: servers that exist; members that were deleted are not shown."""
    shown: dict[str, Any] = {
        "id": group.uuid,
        "name": group.name,
        "members": [member for member in group.members if member in living],
    }
    if request.version >= (2, 64):
        shown |= {"policy": group.policy, "rules": group.rules}
    else:
        shown |= {"policies": [group.policy], "metadata": {}}
    if request.version >= (2, 13):
        shown |= {"project_id": group.project_id, "user_id": group.user_id}
    return shown


def _living(request: ApiRequest, groups: list[ServerGroup]) -> set[str]:
    return set(mappings.cells_of(request.services.api, [member for group in groups for member in group.members]))


def _find(request: ApiRequest, group_id: str, operation: str) -> ServerGroup:
    group = store.get(request.services.api, group_id)
    request.authorize(RULE + operation, {"project_id": group.project_id, "user_id": group.user_id})
    return group


@handler(query=schemas.LIST, answer=answers.GROUPS)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "index")
    everybody = "all_projects" in request.query
    if everybody:
        # As in Nova, callers that may not see all groups get their own.
        everybody = request.allows(RULE + "index:all_projects")
    groups = store.list_for(request.services.api, None if everybody else request.project_id)
    start = int(request.param("offset") or 0)
    groups = groups[start : start + paging.limit_of(request)]
    living = _living(request, groups)
    return Response(200, {"server_groups": [_view(request, group, living) for group in groups]})


@handler(answer=answers.GROUP)
def show(request: ApiRequest, group_id: str) -> Response:
    group = _find(request, group_id, "show")
    return Response(200, {"server_group": _view(request, group, _living(request, [group]))})


@handler(body=schemas.CREATE, answer=answers.GROUP)
def create(request: ApiRequest) -> Response:
    request.authorize(RULE + "create")
    wanted = request.body["server_group"]
    policy = wanted["policy"] if request.version >= (2, 64) else wanted["policies"][0]
    rules = {name: int(value) for name, value in wanted.get("rules", {}).items()}
    if rules and policy != "anti-affinity":
        raise errors.BadRequest("Only anti-affinity policy supports rules.")
    services, known = request.services, quota.look_up(request.services, request.project_id)

    def check(used: int) -> None:
        message = "Quota exceeded, too many server groups."
        quota.check_count(services, request.project_id, "server_groups", message, used=used, more=1, known=known)

    group = store.create(
        services.api,
        ServerGroup(
            uuid=str(uuid.uuid4()),
            name=wanted["name"],
            project_id=request.project_id,
            user_id=request.user_id,
            policy=policy,
            rules=rules,
        ),
        check,
        one_by_one=quota.rechecks(services),
    )
    return Response(200, {"server_group": _view(request, group, set())})


@handler(statuses=(204,), answer=EMPTY)
def delete(request: ApiRequest, group_id: str) -> Response:
    group = _find(request, group_id, "delete")
    store.delete(request.services.api, group.uuid)
    return Response(204)
