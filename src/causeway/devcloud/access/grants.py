"""The roles of a user in a project, including implied roles."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from causeway.devcloud.tables.identity import Assignment, Domain, ImpliedRole, Project, Role, User


def may_log_in(session: Session, user: User) -> bool:
    return user.enabled and session.get_one(Domain, user.domain_id).enabled


def effective_roles(session: Session, user_id: str, project_id: str) -> list[Role]:
    held = list(
        session.scalars(
            select(Assignment.role_id).where(Assignment.user_id == user_id, Assignment.project_id == project_id)
        )
    )
    return [role for role_id in with_implied(session, held) if (role := session.get(Role, role_id)) is not None]


def with_implied(session: Session, role_ids: list[str]) -> list[str]:
    """The roles themselves, then the roles that they imply, each once."""
    implied: dict[str, list[str]] = {}
    for row in session.scalars(select(ImpliedRole)):
        implied.setdefault(row.prior_id, []).append(row.implied_id)
    found = list(dict.fromkeys(role_ids))
    for role_id in found:
        found.extend(each for each in implied.get(role_id, ()) if each not in found)
    return found


def projects_of(session: Session, user_id: str) -> list[Project]:
    query = select(Project).join(Assignment, Assignment.project_id == Project.id).where(Assignment.user_id == user_id)
    return list(session.scalars(query.distinct().order_by(Project.name)))
