"""Roles and who has them."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from causeway.devcloud.access import grants
from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import forbidden, not_found
from causeway.devcloud.identity import accounts, lookups, views
from causeway.devcloud.tables.identity import Assignment, Domain, ImpliedRole, Project, Role, User
from causeway.devcloud.web import Call, links_root


def list_roles(call: Call) -> Json:
    call.require_privileged()
    return views.collection(call, "roles", [views.role(call, row) for row in call.session.scalars(select(Role))])


def show_role(call: Call, role_id: str) -> Json:
    call.require_privileged()
    return {"role": views.role(call, get_role(call.session, role_id))}


def create_role(call: Call) -> Json:
    call.require_admin()
    given = call.body("role")
    lookups.refuse_taken(call.session, Role, str(given.get("name")), "role")
    row = Role(name=str(given.get("name")), description=given.get("description"))
    call.session.add(row)
    call.session.flush()
    return {"role": views.role(call, row)}


def list_implied(call: Call) -> Json:
    call.require_admin()
    inferences = []
    for role in call.session.scalars(select(Role)):
        implied = call.session.scalars(select(ImpliedRole.implied_id).where(ImpliedRole.prior_id == role.id))
        rows = [views.role(call, row) for role_id in implied if (row := call.session.get(Role, role_id))]
        if rows:
            inferences.append({"prior_role": views.role(call, role), "implies": rows})
    return {"role_inferences": inferences}


def list_granted(call: Call, project_id: str, user_id: str) -> Json:
    call.require_admin()
    query = select(Assignment.role_id).where(Assignment.project_id == project_id, Assignment.user_id == user_id)
    rows = [views.role(call, get_role(call.session, role_id)) for role_id in call.session.scalars(query)]
    return views.collection(call, "roles", rows)


def check_grant(call: Call, project_id: str, user_id: str, role_id: str) -> None:
    call.require_admin()
    if call.session.get(Assignment, (user_id, project_id, role_id)) is None:
        raise not_found("Could not find role assignment.")


def grant(call: Call, project_id: str, user_id: str, role_id: str) -> None:
    call.require_admin()
    key = (
        accounts.get_user(call.session, user_id).id,
        accounts.get_project(call.session, project_id).id,
        get_role(call.session, role_id).id,
    )
    if call.session.get(Assignment, key) is None:
        call.session.add(Assignment(user_id=key[0], project_id=key[1], role_id=key[2]))
    call.after_commit.append(call.cloud.tokens.clear_cache)


def revoke(call: Call, project_id: str, user_id: str, role_id: str) -> None:
    call.require_admin()
    row = call.session.get(Assignment, (user_id, project_id, role_id))
    if row is None:
        raise not_found("Could not find role assignment.")
    call.session.delete(row)
    call.after_commit.append(call.cloud.tokens.clear_cache)


def list_assignments(call: Call) -> Json:
    wanted = call.request.params
    if not call.caller.is_admin and wanted.get("user.id") != call.caller.user_id:
        raise forbidden()
    effective = "effective" in wanted
    names = "include_names" in wanted and wanted["include_names"] not in ("0", "False", "false")
    query = select(Assignment)
    if "user.id" in wanted:
        query = query.where(Assignment.user_id == wanted["user.id"])
    if "scope.project.id" in wanted:
        query = query.where(Assignment.project_id == wanted["scope.project.id"])
    if any(name in wanted for name in ("group.id", "scope.domain.id", "scope.system")):
        return {"role_assignments": [], "links": {"self": call.request.uri, "previous": None, "next": None}}
    rows: list[Json] = []
    for row in call.session.scalars(query):
        user = call.session.get_one(User, row.user_id)
        project = call.session.get_one(Project, row.project_id)
        for role_id in grants.with_implied(call.session, [row.role_id]) if effective else [row.role_id]:
            if wanted.get("role.id") not in (None, role_id):
                continue
            role = call.session.get_one(Role, role_id)
            path = f"/v3/projects/{project.id}/users/{user.id}/roles/{role.id}"
            rows.append(
                {
                    "role": _reference(call, role, names),
                    "user": _reference(call, user, names),
                    "scope": {"project": _reference(call, project, names)},
                    "links": {"assignment": links_root(call.request) + path},
                }
            )
    return {"role_assignments": rows, "links": {"self": call.request.uri, "previous": None, "next": None}}


def _reference(call: Call, row: Role | User | Project, names: bool) -> Json:
    if not names:
        return {"id": row.id}
    body: Json = {"id": row.id, "name": row.name}
    if not isinstance(row, Role):
        body["domain"] = {"id": row.domain_id, "name": call.session.get_one(Domain, row.domain_id).name}
    return body


def get_role(session: Session, role_id: str) -> Role:
    return lookups.find(session, Role, role_id, "role")
