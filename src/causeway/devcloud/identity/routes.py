"""The Identity API on one screen."""

import msgspec

from causeway.devcloud.cloud import Cloud
from causeway.devcloud.identity import (
    accounts,
    auth,
    credentials,
    domains,
    groups,
    limits,
    roles,
    services,
    trusts,
    versions,
)
from causeway.devcloud.web import Route, Service, phrase

GRANTS = "/v3/projects/{project_id}/users/{user_id}/roles"
MEMBER = "/v3/groups/{group_id}/users/{user_id}"
CREDENTIALS = "/v3/users/{user_id}/application_credentials"
TRUSTS = "/v3/OS-TRUST/trusts"

ROUTES = [
    Route("GET", "/", versions.list_versions, public=True),
    Route("GET", "/v3", versions.show_version, public=True),
    Route("POST", "/v3/auth/tokens", auth.issue, 201, public=True),
    Route("GET", "/v3/auth/tokens", auth.validate),
    Route("HEAD", "/v3/auth/tokens", auth.validate),
    Route("DELETE", "/v3/auth/tokens", auth.revoke, 204),
    Route("GET", "/v3/auth/projects", auth.list_projects),
    Route("GET", "/v3/auth/domains", auth.list_domains),
    Route("GET", "/v3/auth/system", auth.list_system),
    Route("GET", "/v3/auth/catalog", auth.show_catalog),
    Route("GET", "/v3/projects", accounts.list_projects),
    Route("POST", "/v3/projects", accounts.create_project, 201),
    Route("GET", "/v3/projects/{project_id}", accounts.show_project),
    Route("PATCH", "/v3/projects/{project_id}", accounts.update_project),
    Route("DELETE", "/v3/projects/{project_id}", accounts.delete_project, 204),
    Route("GET", "/v3/users", accounts.list_users),
    Route("POST", "/v3/users", accounts.create_user, 201),
    Route("GET", "/v3/users/{user_id}", accounts.show_user),
    Route("PATCH", "/v3/users/{user_id}", accounts.update_user),
    Route("DELETE", "/v3/users/{user_id}", accounts.delete_user, 204),
    Route("POST", "/v3/users/{user_id}/password", accounts.change_password, 204),
    Route("GET", "/v3/users/{user_id}/projects", accounts.list_projects_of_user),
    Route("GET", "/v3/users/{user_id}/groups", groups.list_of_user),
    Route("GET", "/v3/users/{user_id}/access_rules", credentials.list_access_rules),
    Route("GET", CREDENTIALS, credentials.list_credentials),
    Route("POST", CREDENTIALS, credentials.create, 201),
    Route("GET", CREDENTIALS + "/{credential_id}", credentials.show),
    Route("DELETE", CREDENTIALS + "/{credential_id}", credentials.delete, 204),
    Route("GET", "/v3/credentials", credentials.list_of_users),
    Route("GET", "/v3/groups", groups.list_groups),
    Route("POST", "/v3/groups", groups.create, 201),
    Route("GET", "/v3/groups/{group_id}", groups.show),
    Route("PATCH", "/v3/groups/{group_id}", groups.update),
    Route("DELETE", "/v3/groups/{group_id}", groups.delete, 204),
    Route("GET", "/v3/groups/{group_id}/users", groups.list_members),
    Route("HEAD", MEMBER, groups.check_member, 204),
    Route("GET", MEMBER, groups.check_member, 204),
    Route("PUT", MEMBER, groups.add_member, 204),
    Route("DELETE", MEMBER, groups.remove_member, 204),
    Route("GET", TRUSTS, trusts.list_trusts),
    Route("POST", TRUSTS, trusts.create, 201),
    Route("GET", TRUSTS + "/{trust_id}", trusts.show),
    Route("DELETE", TRUSTS + "/{trust_id}", trusts.delete, 204),
    Route("GET", TRUSTS + "/{trust_id}/roles", trusts.list_roles),
    Route("GET", TRUSTS + "/{trust_id}/roles/{role_id}", trusts.show_role),
    Route("GET", "/v3/roles", roles.list_roles),
    Route("POST", "/v3/roles", roles.create_role, 201),
    Route("GET", "/v3/roles/{role_id}", roles.show_role),
    Route("GET", "/v3/role_inferences", roles.list_implied),
    Route("GET", "/v3/role_assignments", roles.list_assignments),
    Route("GET", GRANTS, roles.list_granted),
    Route("HEAD", GRANTS + "/{role_id}", roles.check_grant, 204),
    Route("GET", GRANTS + "/{role_id}", roles.check_grant, 204),
    Route("PUT", GRANTS + "/{role_id}", roles.grant, 204),
    Route("DELETE", GRANTS + "/{role_id}", roles.revoke, 204),
    *(Route("GET", f"/v3/{family}", services.lister(family)) for family in services.FAMILIES),
    *(Route("GET", f"/v3/{family}/{{row_id}}", services.shower(family)) for family in services.FAMILIES),
    *(
        Route("DELETE", f"/v3/{family}/{{row_id}}", services.deleter(family), 204)
        for family in ("services", "endpoints")
    ),
    Route("POST", "/v3/domains", domains.create, 201),
    Route("PATCH", "/v3/domains/{row_id}", domains.update),
    Route("DELETE", "/v3/domains/{row_id}", domains.delete, 204),
    Route("POST", "/v3/services", services.create_service, 201),
    Route("PATCH", "/v3/services/{row_id}", services.update_service),
    Route("POST", "/v3/endpoints", services.create_endpoint, 201),
    Route("PATCH", "/v3/endpoints/{row_id}", services.update_endpoint),
    Route("GET", "/v3/registered_limits", limits.list_registered),
    Route("POST", "/v3/registered_limits", limits.create_registered, 201),
    Route("GET", "/v3/registered_limits/{row_id}", limits.show_registered),
    Route("PATCH", "/v3/registered_limits/{row_id}", limits.update_registered),
    Route("DELETE", "/v3/registered_limits/{row_id}", limits.delete_registered, 204),
    Route("GET", "/v3/limits/model", limits.show_model),
    Route("GET", "/v3/limits", limits.list_limits),
    Route("POST", "/v3/limits", limits.create_limits, 201),
    Route("GET", "/v3/limits/{row_id}", limits.show_limit),
    Route("PATCH", "/v3/limits/{row_id}", limits.update_limit),
    Route("DELETE", "/v3/limits/{row_id}", limits.delete_limit, 204),
]


def error_body(status: int, message: str, _kind: str) -> tuple[str, bytes]:
    body = {"error": {"code": status, "message": message, "title": phrase(status)}}
    return "application/json", msgspec.json.encode(body)


def make_service(cloud: Cloud) -> Service:
    return Service(cloud, "identity", ROUTES, error_body)
