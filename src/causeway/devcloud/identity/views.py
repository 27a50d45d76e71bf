"""Identity's rows as its API shows them."""

from typing import Any

from causeway.devcloud.bodies import Json
from causeway.devcloud.tables.delegation import ApplicationCredential, Trust
from causeway.devcloud.tables.identity import Domain, Endpoint, Group, Project, Region, Role, Service, User
from causeway.devcloud.tables.limits import ProjectLimit, RegisteredLimit
from causeway.devcloud.web import Call, links_root


def _links(call: Call, family: str, row_id: str) -> Json:
    return {"self": f"{links_root(call.request)}/v3/{family}/{row_id}"}


def collection(call: Call, key: str, rows: list[Any]) -> Json:
    """A list, narrowed by the query parameters that name members of its rows (`name`, `type`, `enabled`, ...)."""
    wanted = {name: value for name, value in call.request.params.items() if rows and name in rows[0]}
    if wanted:
        rows = [row for row in rows if all(_matches(row.get(name), value) for name, value in wanted.items())]
    return {key: rows, "links": {"self": call.request.uri, "previous": None, "next": None}}


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(value, bool):
        return value == (str(wanted).lower() not in ("false", "0", "no"))
    return str(value) == str(wanted)


def domain(call: Call, row: Domain) -> Json:
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "enabled": row.enabled,
        "tags": [],
        "options": {},
        "links": _links(call, "domains", row.id),
    }


def project(call: Call, row: Project) -> Json:
    return {
        "id": row.id,
        "name": row.name,
        "domain_id": row.domain_id,
        "parent_id": row.parent_id,
        "description": row.description,
        "enabled": row.enabled,
        "is_domain": False,
        "tags": row.tags,
        "options": {},
        "links": _links(call, "projects", row.id),
    }


def user(call: Call, row: User) -> Json:
    body: Json = {
        "id": row.id,
        "name": row.name,
        "domain_id": row.domain_id,
        "description": row.description,
        "enabled": row.enabled,
        "password_expires_at": None,
        "options": {},
        "links": _links(call, "users", row.id),
    }
    if row.email:
        body["email"] = row.email
    if row.default_project_id:
        body["default_project_id"] = row.default_project_id
    return body


def group(call: Call, row: Group) -> Json:
    return {
        "id": row.id,
        "name": row.name,
        "domain_id": row.domain_id,
        "description": row.description,
        "links": _links(call, "groups", row.id),
    }


def role(call: Call, row: Role) -> Json:
    return {
        "id": row.id,
        "name": row.name,
        "domain_id": None,
        "description": row.description,
        "options": {},
        "links": _links(call, "roles", row.id),
    }


def credential(call: Call, row: ApplicationCredential) -> Json:
    roles = [each for role_id in row.role_ids if (each := call.session.get(Role, role_id))]
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "project_id": row.project_id,
        "user_id": row.user_id,
        "roles": [{"id": each.id, "name": each.name, "domain_id": None} for each in roles],
        "access_rules": [],
        "expires_at": row.expires_at,
        "unrestricted": row.unrestricted,
        "system": None,
        "links": _links(call, f"users/{row.user_id}/application_credentials", row.id),
    }


def trust(call: Call, row: Trust) -> Json:
    links = _links(call, "OS-TRUST/trusts", row.id)
    return {
        "id": row.id,
        "trustor_user_id": row.trustor_id,
        "trustee_user_id": row.trustee_id,
        "project_id": row.project_id,
        "impersonation": row.impersonation,
        "expires_at": row.expires_at,
        "remaining_uses": row.remaining_uses,
        "deleted_at": None,
        "redelegated_trust_id": None,
        "redelegation_count": 0,
        "roles_links": {"self": links["self"] + "/roles", "previous": None, "next": None},
        "links": links,
    }


def service(call: Call, row: Service) -> Json:
    return {
        "id": row.id,
        "type": row.type,
        "name": row.name,
        "description": row.description,
        "enabled": row.enabled,
        "links": _links(call, "services", row.id),
    }


def endpoint(call: Call, row: Endpoint) -> Json:
    return {
        "id": row.id,
        "service_id": row.service_id,
        "interface": row.interface,
        "region": row.region_id,
        "region_id": row.region_id,
        "url": row.url,
        "enabled": row.enabled,
        "links": _links(call, "endpoints", row.id),
    }


def region(call: Call, row: Region) -> Json:
    return {
        "id": row.id,
        "description": row.description,
        "parent_region_id": None,
        "links": _links(call, "regions", row.id),
    }


def registered_limit(call: Call, row: RegisteredLimit) -> Json:
    return {
        "id": row.id,
        "service_id": row.service_id,
        "region_id": row.region_id,
        "resource_name": row.resource_name,
        "default_limit": row.default_limit,
        "description": row.description,
        "links": _links(call, "registered_limits", row.id),
    }


def limit(call: Call, row: ProjectLimit, registered: RegisteredLimit) -> Json:
    return {
        "id": row.id,
        "service_id": registered.service_id,
        "region_id": registered.region_id,
        "resource_name": registered.resource_name,
        "resource_limit": row.resource_limit,
        "project_id": row.project_id,
        "domain_id": None,
        "description": row.description,
        "links": _links(call, "limits", row.id),
    }
