"""``/flavors/{id}/os-extra_specs``. Source: Compute API reference, "Flavors extra-specs"."""

from __future__ import annotations

from causeway import errors
from causeway.api import extra_spec_rules
from causeway.api.answers import flavors as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.resources import flavors
from causeway.api.schemas import flavor_access as schemas
from causeway.store.api import flavors as store

RULE = "os_compute_api:os-flavor-extra-specs:"


def _check(request: ApiRequest, specs: dict[str, object]) -> dict[str, str]:
    """The specs as strings; from 2.86 on those of known namespaces are checked."""
    checked = {name: str(value) for name, value in specs.items()}
    if request.version >= (2, 86):
        for name, value in checked.items():
            extra_spec_rules.check(name, value)
    return checked


@handler(answer=answers.EXTRA_SPECS)
def index(request: ApiRequest, flavor_id: str) -> Response:
    request.authorize(RULE + "index")
    return Response(200, {"extra_specs": flavors.find(request, flavor_id).extra_specs})


@handler(answer=answers.EXTRA_SPEC)
def show(request: ApiRequest, flavor_id: str, key: str) -> Response:
    request.authorize(RULE + "show")
    specs = flavors.find(request, flavor_id).extra_specs
    if key not in specs:
        raise errors.NotFound(f"Flavor {flavor_id} has no extra specs with key {key}.")
    return Response(200, {key: specs[key]})


@handler(body=schemas.CREATE_SPECS, answer=answers.EXTRA_SPECS)
def create(request: ApiRequest, flavor_id: str) -> Response:
    """Adds specs; those of the same name are replaced."""
    request.authorize(RULE + "create")
    new = _check(request, request.body["extra_specs"])
    flavor = flavors.find(request, flavor_id)
    store.update(request.services.api, flavor_id, extra_specs=flavor.extra_specs | new)
    return Response(200, {"extra_specs": new})


@handler(body=schemas.UPDATE_SPEC, answer=answers.EXTRA_SPEC)
def update(request: ApiRequest, flavor_id: str, key: str) -> Response:
    request.authorize(RULE + "update")
    if key not in request.body:
        raise errors.BadRequest("Request body and URI mismatch")
    new = _check(request, request.body)
    flavor = flavors.find(request, flavor_id)
    store.update(request.services.api, flavor_id, extra_specs=flavor.extra_specs | new)
    return Response(200, new)


@handler(answer=EMPTY)
def delete(request: ApiRequest, flavor_id: str, key: str) -> Response:
    request.authorize(RULE + "delete")
    specs = flavors.find(request, flavor_id).extra_specs
    if key not in specs:
        raise errors.NotFound(f"Flavor {flavor_id} has no extra specs with key {key}.")
    kept = {name: value for name, value in specs.items() if name != key}
    store.update(request.services.api, flavor_id, extra_specs=kept)
    return Response(200)
