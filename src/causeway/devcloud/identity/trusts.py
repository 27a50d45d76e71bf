"""/v3/OS-TRUST/trusts: users hand on roles of theirs to others, who log in with them."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from causeway.devcloud.access.tokens import TIME_FORMAT
from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, forbidden, not_found
from causeway.devcloud.identity import accounts, delegated, views
from causeway.devcloud.identity.roles import get_role
from causeway.devcloud.tables.delegation import Trust
from causeway.devcloud.tables.identity import User
from causeway.devcloud.web import Call


def list_trusts(call: Call) -> Json:
    wanted = call.request.params
    mine = call.caller.user_id in (wanted.get("trustor_user_id"), wanted.get("trustee_user_id"))
    if not mine and not call.caller.is_admin:
        raise forbidden()
    rows = [row for row in call.session.scalars(select(Trust)) if not _ended(row) and _may_see(call, row)]
    return views.collection(call, "trusts", [views.trust(call, row) for row in rows])


def show(call: Call, trust_id: str) -> Json:
    row = _seen(call, trust_id)
    return {"trust": {**views.trust(call, row), "roles": _roles(call, row)}}


def create(call: Call) -> Json:
    delegated.refuse_restricted(call, "trusts")
    given = call.body("trust")
    if given.get("trustor_user_id") != call.caller.user_id:
        raise forbidden("The authenticated user should match the trustor.")
    if not isinstance(given.get("impersonation"), bool):
        raise bad_request("A trust needs 'impersonation', which is true or false.")
    if given.get("allow_redelegation"):
        raise bad_request("Trusts that may be handed on are not offered here.")
    uses = given.get("remaining_uses")
    if uses is not None and (not isinstance(uses, int) or isinstance(uses, bool) or uses < 1):
        raise bad_request("'remaining_uses' must be a number of 1 or more, or null.")
    trustee = accounts.get_user(call.session, str(given.get("trustee_user_id")))
    project = accounts.get_project(call.session, str(given.get("project_id")))
    role_ids = delegated.given_roles(call, given.get("roles") or [])
    if not role_ids:
        raise forbidden("At least one role should be specified.")
    delegated.refuse_unheld(call, role_ids, call.caller.user_id, project.id)
    row = Trust(
        trustor_id=call.caller.user_id,
        trustee_id=trustee.id,
        project_id=project.id,
        role_ids=role_ids,
        impersonation=given["impersonation"],
        expires_at=delegated.given_end(given),
        remaining_uses=uses,
    )
    call.session.add(row)
    call.session.flush()
    return {"trust": {**views.trust(call, row), "roles": _roles(call, row)}}


def delete(call: Call, trust_id: str) -> None:
    row = _seen(call, trust_id)
    delegated.refuse_restricted(call, "trusts")
    if call.caller.user_id != row.trustor_id and not call.caller.is_admin:
        raise forbidden()
    call.session.delete(row)
    call.after_commit.append(call.cloud.tokens.clear_cache)


def list_roles(call: Call, trust_id: str) -> Json:
    return views.collection(call, "roles", _roles(call, _seen(call, trust_id)))


def show_role(call: Call, trust_id: str, role_id: str) -> Json:
    row = _seen(call, trust_id)
    if role_id not in row.role_ids:
        raise not_found(f"Could not find role: {role_id}.")
    return {"role": views.role(call, get_role(call.session, role_id))}


def use(call: Call, trust_id: Any, user: User) -> Trust:
    """The trust for one more token of its trustee. Raises ApiError 403 if the user is another, or it was used often enough."""
    row = _find(call, str(trust_id))
    if row.trustee_id != user.id:
        raise forbidden("User is not a trustee.")
    if row.remaining_uses is not None:
        if row.remaining_uses < 1:
            raise forbidden(f"No remaining uses for trust: {row.id}.")
        row.remaining_uses -= 1
    return row


def _find(call: Call, trust_id: str) -> Trust:
    row = call.session.get(Trust, trust_id)
    if row is None or _ended(row):
        raise not_found(f"Could not find trust: {trust_id}.")
    return row


def _seen(call: Call, trust_id: str) -> Trust:
    row = _find(call, trust_id)
    if not _may_see(call, row):
        raise forbidden()
    return row


def _may_see(call: Call, row: Trust) -> bool:
    return call.caller.user_id in (row.trustor_id, row.trustee_id) or call.caller.is_admin


def _ended(row: Trust) -> bool:
    return row.expires_at is not None and row.expires_at <= datetime.now(UTC).strftime(TIME_FORMAT)


def _roles(call: Call, row: Trust) -> list[Json]:
    return [views.role(call, get_role(call.session, role_id)) for role_id in row.role_ids]
