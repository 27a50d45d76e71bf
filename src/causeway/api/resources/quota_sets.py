"""``/os-quota-sets`` and ``/os-quota-class-sets``. Source: Compute API reference, "Quota sets", "Quota class sets".

If the identity service has the limits, or nothing is limited ([quota] driver), limits that are set here are validated but have
no effect, as in Nova: the answer shows the limits in force.
"""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.answers import projects as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.quotas import quota
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import common
from causeway.api.schemas import quotas as schemas
from causeway.store.api import quotas as store

RULE = "os_compute_api:os-quota-sets:"
CLASS_RULE = "os_compute_api:os-quota-class-sets:"


def _user(request: ApiRequest) -> str | None:
    """The user whose quotas are meant; None for the project's. An empty name means the project, too."""
    return request.param("user_id") or None


def _shown(request: ApiRequest, values: dict[str, Any]) -> dict[str, Any]:
    """The values of the resources that the version knows."""
    return {name: values[name] for name in schemas.resources_of(schemas.SET_RESOURCES, request.version.minor)}


@handler(query=schemas.QUERY, answer=answers.QUOTA_SET)
def show(request: ApiRequest, tenant_id: str) -> Response:
    request.authorize(RULE + "show", {"project_id": tenant_id})
    limits = quota.limits(request.services, tenant_id, _user(request))
    return Response(200, {"quota_set": {"id": tenant_id} | _shown(request, limits)})


@handler(query=schemas.QUERY, answer=answers.QUOTA_SET_DETAIL)
def detail(request: ApiRequest, tenant_id: str) -> Response:
    request.authorize(RULE + "detail", {"project_id": tenant_id})
    user_id = _user(request)
    limits = quota.limits(request.services, tenant_id, user_id)
    used = quota.in_use(request.services, tenant_id, user_id)
    reserved = quota.reserved(request.services)
    values = {name: {"limit": limits[name], "in_use": used[name], "reserved": reserved} for name in limits}
    return Response(200, {"quota_set": {"id": tenant_id} | _shown(request, values)})


@handler(query=common.IGNORED_QUERY, answer=answers.QUOTA_SET)
def defaults(request: ApiRequest, tenant_id: str) -> Response:
    request.authorize(RULE + "defaults", {"project_id": tenant_id})
    values = quota.defaults(request.services)
    return Response(200, {"quota_set": {"id": tenant_id} | _shown(request, values)})


@handler(body=schemas.UPDATE, query=schemas.QUERY, answer=answers.CHANGED_QUOTA_SET)
def update(request: ApiRequest, tenant_id: str) -> Response:
    request.authorize(RULE + "update", {"project_id": tenant_id})
    user_id = _user(request)
    wanted = dict(request.body["quota_set"])
    force = common.to_bool(wanted.pop("force", False))
    new = {name: int(value) for name, value in wanted.items()}
    if not quota.are_limits_stored_here(request.services):
        return Response(200, {"quota_set": _shown(request, quota.limits(request.services, tenant_id))})
    _check_limits(request, new, tenant_id, user_id, force=force)
    of_project = {name: limit for name, limit in new.items() if user_id is None or name in quota.WHOLE_PROJECT}
    store.set_limits(request.services.api, tenant_id, of_project)
    if user_id is not None:
        of_user = {name: limit for name, limit in new.items() if name not in of_project}
        store.set_limits(request.services.api, tenant_id, of_user, user_id)
    limits = quota.limits(request.services, tenant_id, user_id)
    return Response(200, {"quota_set": _shown(request, limits)})


def _check_limits(request: ApiRequest, new: dict[str, int], project: str, user: str | None, *, force: bool) -> None:
    """Raises BadRequest for a limit below what is in use (unless ``force``), or a user's above the project's."""
    if user is not None:
        of_project = quota.limits(request.services, project)
        for name, limit in new.items():
            most = of_project[name]
            if most != quota.UNLIMITED and (limit > most or limit == quota.UNLIMITED):
                raise errors.BadRequest(f"Quota limit {limit} for {name} must be less than or equal to {most}.")
    if force or all(limit == quota.UNLIMITED for limit in new.values()):
        return
    used = quota.in_use(request.services, project, user)
    for name, limit in new.items():
        if limit != quota.UNLIMITED and limit < used[name]:
            raise errors.BadRequest(
                f"Quota limit {limit} for {name} must be greater than or equal to already used and reserved {used[name]}."
            )


@handler(query=schemas.QUERY, statuses=(202,), answer=EMPTY)
def delete(request: ApiRequest, tenant_id: str) -> Response:
    request.authorize(RULE + "delete", {"project_id": tenant_id})
    if quota.are_limits_stored_here(request.services):
        store.delete_limits(request.services.api, tenant_id, _user(request) or "")
    return Response(202)


def _class_limits(request: ApiRequest, quota_class: str) -> dict[str, Any]:
    limits = quota.defaults(request.services)
    if quota.are_limits_stored_here(request.services):
        limits |= store.limits(request.services.api, f"class:{quota_class}")
    names = schemas.resources_of(schemas.CLASS_RESOURCES, request.version.minor)
    return {name: limits[name] for name in names}


@handler(answer=answers.QUOTA_CLASS)
def show_class(request: ApiRequest, quota_class: str) -> Response:
    request.authorize(CLASS_RULE + "show", {"quota_class": quota_class})
    return Response(200, {"quota_class_set": {"id": quota_class} | _class_limits(request, quota_class)})


@handler(body=schemas.UPDATE_CLASS, answer=answers.CHANGED_QUOTA_CLASS)
def update_class(request: ApiRequest, quota_class: str) -> Response:
    request.authorize(CLASS_RULE + "update", {"quota_class": quota_class})
    new = {name: int(value) for name, value in request.body["quota_class_set"].items()}
    if quota.are_limits_stored_here(request.services):
        store.set_limits(request.services.api, f"class:{quota_class}", new)
    return Response(200, {"quota_class_set": _class_limits(request, quota_class)})
