"""Domains, regions, services and endpoints, for administrators."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import delete, select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request
from causeway.devcloud.identity import lookups, views
from causeway.devcloud.tables.base import Base
from causeway.devcloud.tables.identity import Domain, Endpoint, Region, Service
from causeway.devcloud.tables.limits import ProjectLimit, RegisteredLimit
from causeway.devcloud.web import Call

Family = tuple[type[Base], str, Callable[[Call, Any], Json]]

FAMILIES: dict[str, Family] = {
    "domains": (Domain, "domain", views.domain),
    "regions": (Region, "region", views.region),
    "services": (Service, "service", views.service),
    "endpoints": (Endpoint, "endpoint", views.endpoint),
}


def lister(family: str) -> Callable[[Call], Json]:
    model, _, view = FAMILIES[family]

    def list_rows(call: Call) -> Json:
        if family != "regions":
            call.require_privileged()
        return views.collection(call, family, [view(call, row) for row in call.session.scalars(select(model))])

    return list_rows


def shower(family: str) -> Callable[..., Json]:
    model, key, view = FAMILIES[family]

    def show_row(call: Call, row_id: str) -> Json:
        if family != "regions":
            call.require_privileged()
        row = lookups.find(call.session, model, row_id, key)
        return {key: view(call, row)}

    return show_row


def deleter(family: str) -> Callable[..., None]:
    model, key, _ = FAMILIES[family]

    def delete_row(call: Call, row_id: str) -> None:
        call.require_admin()
        row = lookups.find(call.session, model, row_id, key)
        if isinstance(row, Service):
            for endpoint in call.session.scalars(select(Endpoint).where(Endpoint.service_id == row.id)):
                call.session.delete(endpoint)
            registered = select(RegisteredLimit.id).where(RegisteredLimit.service_id == row.id)
            call.session.execute(delete(ProjectLimit).where(ProjectLimit.registered_limit_id.in_(registered)))
            call.session.execute(delete(RegisteredLimit).where(RegisteredLimit.service_id == row.id))
            call.session.flush()
        call.session.delete(row)
        call.after_commit.append(call.cloud.tokens.clear_cache)

    return delete_row


def create_service(call: Call) -> Json:
    call.require_admin()
    given = call.body("service")
    if not isinstance(given.get("type"), str):
        raise bad_request("A service needs a type.")
    row = Service(type=given["type"], name=str(given.get("name") or ""), description=given.get("description") or "")
    call.session.add(row)
    call.session.flush()
    call.after_commit.append(call.cloud.tokens.clear_cache)
    return {"service": views.service(call, row)}


def update_service(call: Call, row_id: str) -> Json:
    call.require_admin()
    row = lookups.find(call.session, Service, row_id, "service")
    given = call.body("service")
    if not isinstance(given.get("type", row.type), str):
        raise bad_request("A service's type must be a text.")
    row.type = given.get("type", row.type)
    for name in ("name", "description"):
        if name in given:
            setattr(row, name, str(given[name] or ""))
    row.enabled = bool(given.get("enabled", row.enabled))
    call.after_commit.append(call.cloud.tokens.clear_cache)
    return {"service": views.service(call, row)}


def create_endpoint(call: Call) -> Json:
    call.require_admin()
    row = Endpoint(**_endpoint_fields(call, call.body("endpoint")))
    call.session.add(row)
    call.session.flush()
    call.after_commit.append(call.cloud.tokens.clear_cache)
    return {"endpoint": views.endpoint(call, row)}


def update_endpoint(call: Call, row_id: str) -> Json:
    call.require_admin()
    row = lookups.find(call.session, Endpoint, row_id, "endpoint")
    given = call.body("endpoint")
    if "region" in given and "region_id" not in given:
        given = {**given, "region_id": given["region"]}
    names = ("service_id", "interface", "region_id", "url", "enabled")
    for name, value in _endpoint_fields(call, {name: getattr(row, name) for name in names} | given).items():
        setattr(row, name, value)
    call.after_commit.append(call.cloud.tokens.clear_cache)
    return {"endpoint": views.endpoint(call, row)}


def _endpoint_fields(call: Call, given: Json) -> Json:
    """The columns of an endpoint; ApiError 400 if one is missing or wrong."""
    if call.session.get(Service, str(given.get("service_id"))) is None:
        raise bad_request("An endpoint needs the id of its service.")
    if given.get("interface") not in ("public", "internal", "admin") or not isinstance(given.get("url"), str):
        raise bad_request("An endpoint needs a url, and as interface public, internal or admin.")
    region_id = given.get("region_id") or given.get("region") or call.cloud.config.region
    if not isinstance(region_id, str) or call.session.get(Region, region_id) is None:
        raise bad_request(f"There is no region {region_id}.")
    return {
        "service_id": given["service_id"],
        "interface": given["interface"],
        "region_id": region_id,
        "url": given["url"],
        "enabled": bool(given.get("enabled", True)),
    }
