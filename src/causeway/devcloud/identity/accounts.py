"""Projects and users. Users see their own; administrators make and delete them."""

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from causeway.devcloud.access import delegations, grants
from causeway.devcloud.access.passwords import check_password, hash_password
from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, forbidden
from causeway.devcloud.identity import lookups, views
from causeway.devcloud.tables.identity import Assignment, Domain, Membership, Project, Token, User
from causeway.devcloud.tables.limits import ProjectLimit
from causeway.devcloud.web import Call

DEFAULT_DOMAIN = "default"


def list_projects(call: Call) -> Json:
    call.require_admin()
    rows = call.session.scalars(select(Project).order_by(Project.name))
    return views.collection(call, "projects", [views.project(call, row) for row in rows])


def show_project(call: Call, project_id: str) -> Json:
    row = get_project(call.session, project_id)
    if not call.caller.is_privileged and call.caller.project_id != row.id:
        raise forbidden()
    return {"project": views.project(call, row)}


def create_project(call: Call) -> Json:
    call.require_admin()
    given = call.body("project")
    name = given_name(given)
    domain_id = given_domain_id(call.session, given)
    lookups.refuse_taken(call.session, Project, name, "project", domain_id)
    row = Project(name=name, domain_id=domain_id, parent_id=domain_id, description=str(given.get("description") or ""))
    row.enabled = bool(given.get("enabled", True))
    call.session.add(row)
    call.session.flush()
    return {"project": views.project(call, row)}


def update_project(call: Call, project_id: str) -> Json:
    call.require_admin()
    row = get_project(call.session, project_id)
    given = call.body("project")
    if "name" in given:
        row.name = given_name(given)
    if "description" in given:
        row.description = str(given["description"] or "")
    if "enabled" in given:
        row.enabled = bool(given["enabled"])
    call.after_commit.append(call.cloud.tokens.clear_cache)
    return {"project": views.project(call, row)}


def delete_project(call: Call, project_id: str) -> None:
    call.require_admin()
    remove_project(call.session, get_project(call.session, project_id))
    call.after_commit.append(call.cloud.tokens.clear_cache)


def list_users(call: Call) -> Json:
    call.require_admin()
    rows = call.session.scalars(select(User).order_by(User.name))
    return views.collection(call, "users", [views.user(call, row) for row in rows])


def show_user(call: Call, user_id: str) -> Json:
    row = get_user(call.session, user_id)
    require_own_or_admin(call, row.id)
    return {"user": views.user(call, row)}


def create_user(call: Call) -> Json:
    call.require_admin()
    given = call.body("user")
    name = given_name(given)
    domain_id = given_domain_id(call.session, given)
    lookups.refuse_taken(call.session, User, name, "user", domain_id)
    password = given.get("password")
    row = User(
        name=name,
        domain_id=domain_id,
        password_hash=hash_password(str(password)) if password else None,
        description=str(given.get("description") or ""),
        email=given.get("email"),
        default_project_id=given.get("default_project_id"),
        enabled=bool(given.get("enabled", True)),
    )
    call.session.add(row)
    call.session.flush()
    return {"user": views.user(call, row)}


def update_user(call: Call, user_id: str) -> Json:
    call.require_admin()
    row = get_user(call.session, user_id)
    given = call.body("user")
    if "name" in given:
        row.name = given_name(given)
    if given.get("password"):
        row.password_hash = hash_password(str(given["password"]))
    if "enabled" in given:
        row.enabled = bool(given["enabled"])
    for name in ("description", "email", "default_project_id"):
        if name in given:
            setattr(row, name, given[name])
    call.after_commit.append(call.cloud.tokens.clear_cache)
    return {"user": views.user(call, row)}


def change_password(call: Call, user_id: str) -> None:
    row = get_user(call.session, user_id)
    if row.id != call.caller.user_id:
        raise forbidden()
    given = call.body("user")
    if not check_password(str(given.get("original_password")), row.password_hash):
        raise forbidden("The original password does not match.")
    if not isinstance(given.get("password"), str) or not given["password"]:
        raise bad_request("A new password is needed.")
    row.password_hash = hash_password(given["password"])
    call.session.execute(delete(Token).where(Token.user_id == row.id))
    call.after_commit.append(call.cloud.tokens.clear_cache)


def delete_user(call: Call, user_id: str) -> None:
    call.require_admin()
    remove_user(call.session, get_user(call.session, user_id))
    call.after_commit.append(call.cloud.tokens.clear_cache)


def list_projects_of_user(call: Call, user_id: str) -> Json:
    require_own_or_admin(call, user_id)
    rows = grants.projects_of(call.session, get_user(call.session, user_id).id)
    return views.collection(call, "projects", [views.project(call, row) for row in rows])


def remove_project(session: Session, row: Project) -> None:
    delegations.delete_of_project(session, row.id)
    for model in (Assignment, Token, ProjectLimit):
        session.execute(delete(model).where(model.project_id == row.id))
    session.delete(row)


def remove_user(session: Session, row: User) -> None:
    delegations.delete_of_user(session, row.id)
    for model in (Assignment, Token, Membership):
        session.execute(delete(model).where(model.user_id == row.id))
    session.delete(row)


def get_project(session: Session, project_id: str) -> Project:
    return lookups.find(session, Project, project_id, "project")


def get_user(session: Session, user_id: str) -> User:
    return lookups.find(session, User, user_id, "user")


def require_own_or_admin(call: Call, user_id: str) -> None:
    if not call.caller.is_admin and call.caller.user_id != user_id:
        raise forbidden()


def given_name(given: Json) -> str:
    name = given.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= 255:
        raise bad_request("A name of 1 to 255 characters is needed.")
    return name


def given_domain_id(session: Session, given: Json) -> str:
    domain_id = given.get("domain_id") or DEFAULT_DOMAIN
    lookups.find(session, Domain, domain_id, "domain")
    return str(domain_id)
