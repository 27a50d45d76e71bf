"""Domains: administrators make, change and delete them. Listing and showing them is in `services`."""

from sqlalchemy import select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import forbidden
from causeway.devcloud.identity import accounts, groups, lookups, views
from causeway.devcloud.tables.identity import Domain, Group, Project, User
from causeway.devcloud.web import Call


def create(call: Call) -> Json:
    call.require_admin()
    given = call.body("domain")
    name = accounts.given_name(given)
    lookups.refuse_taken(call.session, Domain, name, "domain")
    row = Domain(name=name, description=str(given.get("description") or ""), enabled=bool(given.get("enabled", True)))
    call.session.add(row)
    call.session.flush()
    return {"domain": views.domain(call, row)}


def update(call: Call, row_id: str) -> Json:
    call.require_admin()
    row = lookups.find(call.session, Domain, row_id, "domain")
    given = call.body("domain")
    if "name" in given and given["name"] != row.name:
        name = accounts.given_name(given)
        lookups.refuse_taken(call.session, Domain, name, "domain")
        row.name = name
    if "description" in given:
        row.description = str(given["description"] or "")
    if "enabled" in given:
        row.enabled = bool(given["enabled"])
    call.after_commit.append(call.cloud.tokens.clear_cache)
    return {"domain": views.domain(call, row)}


def delete(call: Call, row_id: str) -> None:
    """Deletes a disabled domain with its projects, users and groups."""
    call.require_admin()
    row = lookups.find(call.session, Domain, row_id, "domain")
    if row.enabled:
        raise forbidden("Cannot delete a domain that is enabled, please disable it first.")
    for user in call.session.scalars(select(User).where(User.domain_id == row.id)).all():
        accounts.remove_user(call.session, user)
    for project in call.session.scalars(select(Project).where(Project.domain_id == row.id)).all():
        accounts.remove_project(call.session, project)
    for group in call.session.scalars(select(Group).where(Group.domain_id == row.id)).all():
        groups.remove(call.session, group)
    call.session.flush()
    call.session.delete(row)
    call.after_commit.append(call.cloud.tokens.clear_cache)
