"""What application credentials and trusts ask for alike: some roles of a user in a project, until some time."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from causeway.devcloud.access import grants
from causeway.devcloud.access.tokens import TIME_FORMAT
from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, forbidden
from causeway.devcloud.identity.roles import get_role
from causeway.devcloud.tables.identity import Role
from causeway.devcloud.web import Call


def refuse_restricted(call: Call, what: str) -> None:
    """Raises ApiError 403 if the caller's token was itself handed on."""
    if call.caller.restricted:
        raise forbidden(f"A token of a trust, or of a restricted application credential, may not manage {what}.")


def given_roles(call: Call, given: Any) -> list[str]:
    """The ids of roles that a request names by id or by name. Raises ApiError 404 for unknown ones."""
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise bad_request("'roles' must be a list of objects with the id or the name of a role.")
    return list(dict.fromkeys(_role(call, each).id for each in given))


def refuse_unheld(call: Call, role_ids: list[str], user_id: str, project_id: str) -> None:
    """Raises ApiError 403 if the user lacks one of these roles in the project."""
    held = {role.id for role in grants.effective_roles(call.session, user_id, project_id)}
    for role_id in role_ids:
        if role_id not in held:
            raise forbidden(f"User {user_id} does not have the role {role_id} in project {project_id}.")


def given_end(given: Json) -> str | None:
    """`expires_at` of a request, in the form of tokens' times. Raises ApiError 400 if it is none, or in the past."""
    value = given.get("expires_at")
    if value is None:
        return None
    try:
        end = datetime.fromisoformat(str(value))
        end = end.replace(tzinfo=UTC) if end.tzinfo is None else end.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise bad_request("'expires_at' must be a time of ISO 8601, such as 2027-02-27T18:30:59.999999Z.") from error
    if end <= datetime.now(UTC):
        raise bad_request("'expires_at' must be in the future.")
    return end.strftime(TIME_FORMAT)


def _role(call: Call, given: Json) -> Role:
    if "id" in given:
        return get_role(call.session, str(given["id"]))
    row = call.session.scalars(select(Role).where(Role.name == str(given.get("name")))).first()
    return row if row is not None else get_role(call.session, str(given.get("name")))
