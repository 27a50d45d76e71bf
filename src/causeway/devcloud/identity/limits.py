"""/v3/registered_limits and /v3/limits: unified limits, enforced by the services (model ``flat``)."""

from typing import Any

from sqlalchemy import select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, conflict, forbidden, not_found
from causeway.devcloud.identity import views
from causeway.devcloud.tables.identity import Project, Region, Service
from causeway.devcloud.tables.limits import ProjectLimit, RegisteredLimit
from causeway.devcloud.web import Call

UNLIMITED, LARGEST = -1, 2**31 - 1
MODEL = {
    "name": "flat",
    "description": "Limit enforcement and validation does not take project hierarchy into consideration.",
}


def show_model(_call: Call) -> Json:
    return {"model": MODEL}


# --- registered limits


def list_registered(call: Call) -> Json:
    rows = call.session.scalars(select(RegisteredLimit))
    return views.collection(call, "registered_limits", [views.registered_limit(call, row) for row in rows])


def show_registered(call: Call, row_id: str) -> Json:
    return {"registered_limit": views.registered_limit(call, _registered(call, row_id))}


def create_registered(call: Call) -> Json:
    call.require_admin()
    made = []
    for given in _several(call, "registered_limits"):
        row = RegisteredLimit(
            **_place(call, given),
            resource_name=_name(given),
            default_limit=_amount(given, "default_limit"),
            description=given.get("description"),
        )
        _refuse_second(call, row)
        call.session.add(row)
        call.session.flush()
        made.append(row)
    return {"registered_limits": [views.registered_limit(call, row) for row in made]}


def update_registered(call: Call, row_id: str) -> Json:
    call.require_admin()
    row = _registered(call, row_id)
    given = call.body("registered_limit")
    if given.keys() & {"service_id", "region_id", "resource_name"}:
        _refuse_in_use(call, row)
        present = {"service_id": row.service_id, "region_id": row.region_id, "resource_name": row.resource_name} | given
        row.service_id, row.region_id = _place(call, present).values()
        row.resource_name = _name(present)
        _refuse_second(call, row)
    if "default_limit" in given:
        row.default_limit = _amount(given, "default_limit")
    if "description" in given:
        row.description = given["description"]
    return {"registered_limit": views.registered_limit(call, row)}


def delete_registered(call: Call, row_id: str) -> None:
    call.require_admin()
    row = _registered(call, row_id)
    _refuse_in_use(call, row)
    call.session.delete(row)


# --- limits of projects


def list_limits(call: Call) -> Json:
    """All limits for administrators and services; for others, those of the caller's project."""
    query = select(ProjectLimit)
    if not call.caller.is_privileged:
        query = query.where(ProjectLimit.project_id == call.project_id)
    return views.collection(call, "limits", [_view(call, row) for row in call.session.scalars(query)])


def show_limit(call: Call, row_id: str) -> Json:
    row = _limit(call, row_id)
    if not call.caller.is_privileged and row.project_id != call.caller.project_id:
        raise forbidden()
    return {"limit": _view(call, row)}


def create_limits(call: Call) -> Json:
    call.require_admin()
    made = []
    for given in _several(call, "limits"):
        project = call.session.get(Project, str(given.get("project_id")))
        if project is None:
            raise bad_request("A limit needs the id of a project.")
        registered = _find(call, _place(call, given), _name(given))
        if registered is None:
            raise forbidden(f"There is no registered limit of {given['resource_name']} in that service and region.")
        if call.session.scalars(
            select(ProjectLimit).where(
                ProjectLimit.project_id == project.id, ProjectLimit.registered_limit_id == registered.id
            )
        ).first():
            raise conflict(f"Project {project.id} has a limit of {registered.resource_name} already.")
        row = ProjectLimit(
            registered_limit_id=registered.id,
            project_id=project.id,
            resource_limit=_amount(given, "resource_limit"),
            description=given.get("description"),
        )
        call.session.add(row)
        call.session.flush()
        made.append(row)
    return {"limits": [_view(call, row) for row in made]}


def update_limit(call: Call, row_id: str) -> Json:
    call.require_admin()
    row = _limit(call, row_id)
    given = call.body("limit")
    if "resource_limit" in given:
        row.resource_limit = _amount(given, "resource_limit")
    if "description" in given:
        row.description = given["description"]
    return {"limit": _view(call, row)}


def delete_limit(call: Call, row_id: str) -> None:
    call.require_admin()
    call.session.delete(_limit(call, row_id))


# --- what they share


def _view(call: Call, row: ProjectLimit) -> Json:
    return views.limit(call, row, call.session.get_one(RegisteredLimit, row.registered_limit_id))


def _registered(call: Call, row_id: str) -> RegisteredLimit:
    row = call.session.get(RegisteredLimit, row_id)
    if row is None:
        raise not_found(f"Could not find registered limit for {row_id}.")
    return row


def _limit(call: Call, row_id: str) -> ProjectLimit:
    row = call.session.get(ProjectLimit, row_id)
    if row is None:
        raise not_found(f"Could not find limit for {row_id}.")
    return row


def _several(call: Call, key: str) -> list[Json]:
    given = call.body().get(key)
    if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
        raise bad_request(f"The request body must be a JSON object with '{key}', a list of objects.")
    return given


def _place(call: Call, given: Json) -> dict[str, Any]:
    service, region = str(given.get("service_id")), given.get("region_id")
    if call.session.get(Service, service) is None:
        raise bad_request("A limit needs the id of a service.")
    if region is not None and call.session.get(Region, str(region)) is None:
        raise bad_request(f"There is no region {region}.")
    return {"service_id": service, "region_id": region}


def _name(given: Json) -> str:
    name = given.get("resource_name")
    if not isinstance(name, str) or not 0 < len(name) <= 255:
        raise bad_request("A limit needs a resource_name of up to 255 characters.")
    return name


def _amount(given: Json, key: str) -> int:
    amount = given.get(key)
    if not isinstance(amount, int) or isinstance(amount, bool) or not UNLIMITED <= amount <= LARGEST:
        raise bad_request(f"{key} must be a whole number from {UNLIMITED} (no limit) to {LARGEST}.")
    return amount


def _find(call: Call, place: dict[str, Any], name: str) -> RegisteredLimit | None:
    query = select(RegisteredLimit).where(
        RegisteredLimit.service_id == place["service_id"],
        RegisteredLimit.region_id == place["region_id"],
        RegisteredLimit.resource_name == name,
    )
    return call.session.scalars(query).first()


def _refuse_second(call: Call, row: RegisteredLimit) -> None:
    with call.session.no_autoflush:
        other = _find(call, {"service_id": row.service_id, "region_id": row.region_id}, row.resource_name)
    if other is not None and other is not row:
        raise conflict(f"There is a registered limit of {row.resource_name} in that service and region already.")


def _refuse_in_use(call: Call, row: RegisteredLimit) -> None:
    used = select(ProjectLimit).where(ProjectLimit.registered_limit_id == row.id)
    if call.session.scalars(used).first():
        raise forbidden(
            f"Registered limit {row.id} can't be changed or deleted: projects have limits of their own by it."
        )
