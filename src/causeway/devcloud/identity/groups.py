"""Groups of users. They have members; devcloud grants roles to users only."""

from sqlalchemy import delete as delete_rows
from sqlalchemy import select
from sqlalchemy.orm import Session

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import not_found
from causeway.devcloud.identity import accounts, lookups, views
from causeway.devcloud.tables.identity import Group, Membership, User
from causeway.devcloud.web import Call


def list_groups(call: Call) -> Json:
    call.require_admin()
    rows = call.session.scalars(select(Group).order_by(Group.name))
    return views.collection(call, "groups", [views.group(call, row) for row in rows])


def show(call: Call, group_id: str) -> Json:
    call.require_admin()
    return {"group": views.group(call, _find(call, group_id))}


def create(call: Call) -> Json:
    call.require_admin()
    given = call.body("group")
    name, domain_id = accounts.given_name(given), accounts.given_domain_id(call.session, given)
    lookups.refuse_taken(call.session, Group, name, "group", domain_id)
    row = Group(name=name, domain_id=domain_id, description=str(given.get("description") or ""))
    call.session.add(row)
    call.session.flush()
    return {"group": views.group(call, row)}


def update(call: Call, group_id: str) -> Json:
    call.require_admin()
    row = _find(call, group_id)
    given = call.body("group")
    if "name" in given and given["name"] != row.name:
        name = accounts.given_name(given)
        lookups.refuse_taken(call.session, Group, name, "group", row.domain_id)
        row.name = name
    if "description" in given:
        row.description = str(given["description"] or "")
    return {"group": views.group(call, row)}


def delete(call: Call, group_id: str) -> None:
    call.require_admin()
    remove(call.session, _find(call, group_id))


def remove(session: Session, row: Group) -> None:
    session.execute(delete_rows(Membership).where(Membership.group_id == row.id))
    session.delete(row)


def list_of_user(call: Call, user_id: str) -> Json:
    accounts.require_own_or_admin(call, user_id)
    user = accounts.get_user(call.session, user_id)
    query = select(Group).join(Membership, Membership.group_id == Group.id).where(Membership.user_id == user.id)
    rows = call.session.scalars(query.order_by(Group.name))
    return views.collection(call, "groups", [views.group(call, row) for row in rows])


def list_members(call: Call, group_id: str) -> Json:
    call.require_admin()
    group = _find(call, group_id)
    query = select(User).join(Membership, Membership.user_id == User.id).where(Membership.group_id == group.id)
    rows = call.session.scalars(query.order_by(User.name))
    return views.collection(call, "users", [views.user(call, row) for row in rows])


def check_member(call: Call, group_id: str, user_id: str) -> None:
    accounts.require_own_or_admin(call, user_id)
    _membership(call, group_id, user_id)


def add_member(call: Call, group_id: str, user_id: str) -> None:
    call.require_admin()
    key = (_find(call, group_id).id, accounts.get_user(call.session, user_id).id)
    if call.session.get(Membership, key) is None:
        call.session.add(Membership(group_id=key[0], user_id=key[1]))


def remove_member(call: Call, group_id: str, user_id: str) -> None:
    call.require_admin()
    call.session.delete(_membership(call, group_id, user_id))


def _find(call: Call, group_id: str) -> Group:
    return lookups.find(call.session, Group, group_id, "group")


def _membership(call: Call, group_id: str, user_id: str) -> Membership:
    row = call.session.get(Membership, (group_id, user_id))
    if row is None:
        raise not_found(f"User {user_id} not found in group {group_id}.")
    return row
