"""What tokens of application credentials and trusts may do: never more than whoever handed on the rights may do now."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, or_
from sqlalchemy.orm import Session

from causeway.devcloud.access import grants
from causeway.devcloud.bodies import Json
from causeway.devcloud.tables.delegation import ApplicationCredential, DelegatedToken, Trust
from causeway.devcloud.tables.identity import Role, User


@dataclass(frozen=True, slots=True)
class Delegation:
    """`grantor_id`: the user whose roles these are. `shown`: what the token's body says of it.

    `restricted`: its tokens may not hand on rights themselves.
    """

    grantor_id: str
    role_ids: list[str]
    shown: Json
    restricted: bool


def of_token(session: Session, row: DelegatedToken) -> Delegation | None:
    """What a token was issued by; None if that was deleted, or if one of its users may no longer log in."""
    if row.trust_id is not None:
        trust = session.get(Trust, row.trust_id)
        if trust is None or not _all_enabled(session, trust.trustor_id, trust.trustee_id):
            return None
        shown: Json = {
            "OS-TRUST:trust": {
                "id": trust.id,
                "impersonation": trust.impersonation,
                "trustor_user": {"id": trust.trustor_id},
                "trustee_user": {"id": trust.trustee_id},
            }
        }
        return Delegation(trust.trustor_id, trust.role_ids, shown, restricted=True)
    credential = session.get(ApplicationCredential, row.credential_id)
    if credential is None:
        return None
    restricted = not credential.unrestricted
    shown = {"application_credential": {"id": credential.id, "name": credential.name, "restricted": restricted}}
    return Delegation(credential.user_id, credential.role_ids, shown, restricted)


def held_roles(session: Session, delegation: Delegation, project_id: str) -> list[Role]:
    """The roles that a delegation gives in its project: all of them and what they imply, or none if one was revoked."""
    held = {role.id: role for role in grants.effective_roles(session, delegation.grantor_id, project_id)}
    wanted = grants.with_implied(session, delegation.role_ids)
    return [held[role_id] for role_id in wanted] if held.keys() >= set(wanted) else []


def delete_of_user(session: Session, user_id: str) -> None:
    session.execute(delete(ApplicationCredential).where(ApplicationCredential.user_id == user_id))
    session.execute(delete(Trust).where(or_(Trust.trustor_id == user_id, Trust.trustee_id == user_id)))


def delete_of_project(session: Session, project_id: str) -> None:
    models: tuple[Any, ...] = (ApplicationCredential, Trust)
    for model in models:
        session.execute(delete(model).where(model.project_id == project_id))


def _all_enabled(session: Session, *user_ids: str) -> bool:
    users = [session.get(User, user_id) for user_id in user_ids]
    return all(user is not None and grants.may_log_in(session, user) for user in users)
