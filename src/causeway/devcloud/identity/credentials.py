"""/v3/users/{id}/application_credentials: users make and delete their own."""

import secrets
from datetime import UTC, datetime

from sqlalchemy import select

from causeway.devcloud.access.passwords import check_password, hash_password
from causeway.devcloud.access.tokens import TIME_FORMAT
from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, conflict, forbidden, not_found
from causeway.devcloud.identity import accounts, delegated, views
from causeway.devcloud.tables.delegation import ApplicationCredential
from causeway.devcloud.web import Call

KIND = "application_credential"


def list_credentials(call: Call, user_id: str) -> Json:
    accounts.require_own_or_admin(call, user_id)
    query = select(ApplicationCredential).where(ApplicationCredential.user_id == user_id)
    rows = call.session.scalars(query.order_by(ApplicationCredential.name))
    return views.collection(call, "application_credentials", [views.credential(call, row) for row in rows])


def show(call: Call, user_id: str, credential_id: str) -> Json:
    accounts.require_own_or_admin(call, user_id)
    return {KIND: views.credential(call, _find(call, user_id, credential_id))}


def create(call: Call, user_id: str) -> Json:
    if user_id != call.caller.user_id:
        raise forbidden("Users make application credentials for themselves only.")
    delegated.refuse_restricted(call, "application credentials")
    given = call.body(KIND)
    name, project_id = accounts.given_name(given), call.project_id
    if given.get("access_rules"):
        raise bad_request("Access rules are not offered here: an application credential would not be limited to them.")
    query = select(ApplicationCredential.id).where(
        ApplicationCredential.user_id == user_id, ApplicationCredential.name == name
    )
    if call.session.scalars(query).first() is not None:
        raise conflict(f"Conflict occurred attempting to store application_credential - {name} exists already.")
    wanted = given["roles"] if given.get("roles") else [{"name": role} for role in sorted(call.caller.roles)]
    role_ids = delegated.given_roles(call, wanted)
    delegated.refuse_unheld(call, role_ids, user_id, project_id)
    secret = given.get("secret") or secrets.token_urlsafe(64)
    if not isinstance(secret, str):
        raise bad_request("'secret' must be a text.")
    row = ApplicationCredential(
        name=name,
        description=str(given["description"]) if given.get("description") is not None else None,
        user_id=user_id,
        project_id=project_id,
        role_ids=role_ids,
        secret_hash=hash_password(secret),
        unrestricted=bool(given.get("unrestricted", False)),
        expires_at=delegated.given_end(given),
    )
    call.session.add(row)
    call.session.flush()
    return {KIND: {**views.credential(call, row), "secret": secret}}


def delete(call: Call, user_id: str, credential_id: str) -> None:
    accounts.require_own_or_admin(call, user_id)
    delegated.refuse_restricted(call, "application credentials")
    call.session.delete(_find(call, user_id, credential_id))
    call.after_commit.append(call.cloud.tokens.clear_cache)


def list_access_rules(call: Call, user_id: str) -> Json:
    accounts.require_own_or_admin(call, user_id)
    return views.collection(call, "access_rules", [])


def list_of_users(call: Call) -> Json:
    """What users stored for other ways to log in (EC2, TOTP): devcloud has no such way, so there are none."""
    return views.collection(call, "credentials", [])


def log_in(call: Call, given: Json, user_id: str | None) -> ApplicationCredential | None:
    """The credential with this id, or with this name of this user; None if its secret is another, or it has expired."""
    query = select(ApplicationCredential)
    if isinstance(given.get("id"), str):
        query = query.where(ApplicationCredential.id == given["id"])
    else:
        query = query.where(
            ApplicationCredential.name == str(given.get("name")), ApplicationCredential.user_id == user_id
        )
    row = call.session.scalars(query).first()
    if row is None or not check_password(str(given.get("secret")), row.secret_hash):
        return None
    if row.expires_at is not None and row.expires_at <= datetime.now(UTC).strftime(TIME_FORMAT):
        return None
    return row


def _find(call: Call, user_id: str, credential_id: str) -> ApplicationCredential:
    row = call.session.get(ApplicationCredential, credential_id)
    if row is None or row.user_id != user_id:
        raise not_found(f"Could not find Application Credential: {credential_id}.")
    return row
