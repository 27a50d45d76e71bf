"""``/flavors``. Source: Compute API reference, "Flavors"."""

from __future__ import annotations

import uuid
from typing import Any

from causeway import errors
from causeway.api import paging
from causeway.api.answers import flavors as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import common
from causeway.api.schemas import flavors as schemas
from causeway.api.views import flavors as views
from causeway.model.flavor import Flavor
from causeway.store.api import flavors as store

# Python refuses to read numbers of some thousand digits.
_MOST_DIGITS = 18
SEE_EXTRA_SPECS = "os_compute_api:os-flavor-extra-specs:index"
_SORT_FIELDS = {"flavorid": "flavorid", "id": "id", "name": "name", "vcpus": "vcpus", "memory_mb": "memory_mb"} | {
    name: name for name in ("root_gb", "ephemeral_gb", "swap", "rxtx_factor", "is_public", "disabled", "description")
}


def find(request: ApiRequest, flavor_id: str) -> Flavor:
    """A flavor that the caller may see; raises FlavorNotFound."""
    visible_to = None if request.context.is_admin else request.project_id
    return store.get(request.services.api, flavor_id, project_id=visible_to)


def _page(request: ApiRequest) -> list[Flavor]:
    flavors = _visible(request)
    for name, field in (("minRam", "memory_mb"), ("minDisk", "root_gb")):
        text = request.param(name)
        if text is not None:
            if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
                raise errors.BadRequest(f"Invalid {name} filter [{text}]")
            flavors = [flavor for flavor in flavors if getattr(flavor, field) >= int(text)]
    if request.version >= (2, 102) and (wanted := request.param("name")) is not None:
        flavors = [flavor for flavor in flavors if wanted in flavor.name]
    direction = request.param("sort_dir") or "asc"
    if direction not in ("asc", "desc"):
        raise errors.BadRequest("Unknown sort direction, must be one of: asc, desc")
    field = _SORT_FIELDS.get(request.param("sort_key") or "flavorid", "id")
    flavors.sort(key=lambda flavor: _comparable(getattr(flavor, field)), reverse=direction == "desc")
    return paging.page(request, flavors, lambda flavor: flavor.flavorid)


def _comparable(value: Any) -> tuple[bool, Any]:
    return (value is not None, value)


def _visible(request: ApiRequest) -> list[Flavor]:
    """``is_public`` is for administrators: true (default), false, or none for all."""
    if not request.context.is_admin:
        return store.list_all(request.services.api, project_id=request.project_id)
    text = request.param("is_public")
    flavors = store.list_all(request.services.api)
    if text is None:
        # As in Nova: without the filter an administrator sees what any project sees.
        mine = {flavor.flavorid for flavor in store.list_all(request.services.api, project_id=request.project_id)}
        return [flavor for flavor in flavors if flavor.flavorid in mine]
    if text.lower() == "none":
        return flavors
    if text.lower() not in common.BOOLEAN_WORDS:
        raise errors.BadRequest(f"Invalid is_public filter [{text}]")
    return [flavor for flavor in flavors if flavor.is_public == common.to_bool(text)]


@handler(query=schemas.LIST, answer=answers.INDEX)
def index(request: ApiRequest) -> Response:
    flavors = _page(request)
    return _answer(request, "/flavors", flavors, [views.basic(request, flavor) for flavor in flavors])


@handler(query=schemas.LIST, answer=answers.DETAIL)
def detail(request: ApiRequest) -> Response:
    flavors = _page(request)
    specs = request.version >= (2, 61) and request.allows(SEE_EXTRA_SPECS)
    entries = [views.detailed(request, flavor, extra_specs=specs) for flavor in flavors]
    return _answer(request, "/flavors/detail", flavors, entries)


def _answer(request: ApiRequest, path: str, flavors: list[Flavor], entries: list[dict[str, Any]]) -> Response:
    body: dict[str, Any] = {"flavors": entries}
    links = paging.next_link(request, path, flavors, flavors[-1].flavorid if flavors else None)
    if links:
        body["flavors_links"] = links
    return Response(200, body)


def _one(request: ApiRequest, flavor: Flavor) -> Response:
    specs = request.version >= (2, 61) and request.allows(SEE_EXTRA_SPECS)
    return Response(200, {"flavor": views.detailed(request, flavor, extra_specs=specs)})


@handler(answer=answers.SHOW)
def show(request: ApiRequest, flavor_id: str) -> Response:
    return _one(request, find(request, flavor_id))


@handler(body=schemas.CREATE, answer=answers.SHOW)
def create(request: ApiRequest) -> Response:
    request.authorize("os_compute_api:os-flavor-manage:create")
    wanted = request.body["flavor"]
    identifier = wanted.get("id")
    flavor = Flavor(
        flavorid=str(uuid.uuid4()) if identifier in (None, "auto") else str(identifier),
        name=wanted["name"],
        vcpus=int(wanted["vcpus"]),
        memory_mb=int(wanted["ram"]),
        root_gb=int(wanted["disk"]),
        ephemeral_gb=int(wanted.get("OS-FLV-EXT-DATA:ephemeral", 0)),
        swap=int(wanted.get("swap", 0)),
        rxtx_factor=float(wanted.get("rxtx_factor", 1.0)),
        is_public=common.to_bool(wanted.get("os-flavor-access:is_public", True)),
        description=wanted.get("description") if request.version >= (2, 55) else None,
    )
    return _one(request, store.create(request.services.api, flavor))


@handler(body=schemas.UPDATE, answer=answers.SHOW)
def update(request: ApiRequest, flavor_id: str) -> Response:
    request.authorize("os_compute_api:os-flavor-manage:update")
    find(request, flavor_id)
    store.update(request.services.api, flavor_id, description=request.body["flavor"]["description"])
    return _one(request, find(request, flavor_id))


@handler(statuses=(202,), answer=EMPTY)
def delete(request: ApiRequest, flavor_id: str) -> Response:
    request.authorize("os_compute_api:os-flavor-manage:delete")
    store.delete(request.services.api, flavor_id)
    return Response(202)
