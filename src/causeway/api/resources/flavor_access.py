"""``/flavors/{id}/os-flavor-access`` and its actions. Source: Compute API reference, "Flavors access"."""

from __future__ import annotations

from causeway import errors
from causeway.api.answers import flavors as answers
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.resources import flavors
from causeway.api.schemas import flavor_access as schemas
from causeway.model.flavor import Flavor
from causeway.store.api import flavors as store

RULE = "os_compute_api:os-flavor-access"


def _answer(request: ApiRequest, flavor: Flavor) -> Response:
    projects = store.projects(request.services.api, flavor)
    return Response(
        200, {"flavor_access": [{"flavor_id": flavor.flavorid, "tenant_id": project} for project in projects]}
    )


@handler(answer=answers.ACCESS)
def index(request: ApiRequest, flavor_id: str) -> Response:
    request.authorize(RULE)
    flavor = flavors.find(request, flavor_id)
    if flavor.is_public:
        raise errors.NotFound("Access list not available for public flavors.")
    return _answer(request, flavor)


@handler(body=schemas.ADD, answer=answers.ACCESS)
def add(request: ApiRequest, flavor_id: str) -> Response:
    request.authorize(RULE + ":add_tenant_access")
    flavor = flavors.find(request, flavor_id)
    if flavor.is_public and request.version >= (2, 7):
        raise errors.Conflict("Can not add access to a public flavor.")
    store.add_project(request.services.api, flavor, request.body["addTenantAccess"]["tenant"])
    return _answer(request, flavor)


@handler(body=schemas.REMOVE, answer=answers.ACCESS)
def remove(request: ApiRequest, flavor_id: str) -> Response:
    request.authorize(RULE + ":remove_tenant_access")
    flavor = flavors.find(request, flavor_id)
    store.remove_project(request.services.api, flavor, request.body["removeTenantAccess"]["tenant"])
    return _answer(request, flavor)
