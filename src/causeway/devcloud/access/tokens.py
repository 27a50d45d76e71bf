"""Tokens: opaque random strings, stored as hashes, valid until they expire or their user's rights end.

The caller and the rendered body of a valid token stay in memory until something in Identity changes, so a check costs a hash
and a dictionary look-up.
"""

import base64
import hashlib
import secrets
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from causeway.devcloud.access import catalog, delegations, grants
from causeway.devcloud.bodies import Json
from causeway.devcloud.context import Caller
from causeway.devcloud.store import Store
from causeway.devcloud.tables.delegation import ApplicationCredential, DelegatedToken, Trust
from causeway.devcloud.tables.identity import Domain, Project, Role, Token, User

TIME_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(slots=True)
class ValidToken:
    """A valid token, with its caller and body."""

    digest: str
    caller: Caller
    expires: float
    body: Json
    catalog: list[Json] = field(default_factory=list)


class Tokens:
    """Issues, checks and revokes tokens. `lifetime`: of new tokens, in seconds."""

    def __init__(self, store: Store, lifetime: float = 8 * 3600) -> None:
        self.lifetime = lifetime
        self._store = store
        self._valid: dict[str, ValidToken] = {}
        self._lock = threading.Lock()

    def issue(
        self,
        session: Session,
        user: User,
        project: Project | None,
        methods: list[str],
        expires_at: str | None = None,
        by: ApplicationCredential | Trust | None = None,
    ) -> tuple[str, ValidToken | None]:
        """Makes a token for a user, with the rights of `by` if that is given.

        Returns it with its record, which is None if the user has no role in the project. It expires with `expires_at`, if that
        is given, and no later than `by`.
        """
        token = secrets.token_urlsafe(48)
        issued = datetime.now(UTC)
        row = Token(
            digest=_digest(token),
            user_id=user.id,
            project_id=project.id if project else None,
            methods=methods,
            audit_ids=[base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()],
            issued_at=issued.strftime(TIME_FORMAT),
            expires_at=expires_at or (issued + timedelta(seconds=self.lifetime)).strftime(TIME_FORMAT),
        )
        delegated = None
        if by is not None:
            row.expires_at = min(row.expires_at, by.expires_at or row.expires_at)
            delegated = DelegatedToken(digest=row.digest, credential_id=None, trust_id=None)
            if isinstance(by, Trust):
                delegated.trust_id = by.id
            else:
                delegated.credential_id = by.id
        record = self._record(session, row, delegated)
        if record is not None:
            session.add(row)
            if delegated is not None:
                session.add(delegated)
        return token, record

    def check(self, token: str | None) -> Caller | None:
        """The caller of a token; None if the token is not valid."""
        record = self.find(token)
        return record.caller if record else None

    def find(self, token: str | None) -> ValidToken | None:
        if not token:
            return None
        digest = _digest(token)
        record = self._valid.get(digest)
        if record is None:
            with self._store.transaction() as session:
                row = session.get(Token, digest)
                record = self._record(session, row, session.get(DelegatedToken, digest)) if row else None
                if record is None:
                    return None
                with self._lock:
                    self._valid[digest] = record
        return record if record.expires > time.time() else None

    def revoke(self, session: Session, digest: str) -> None:
        session.execute(delete(Token).where(Token.digest == digest))
        self.clear_cache()

    def clear_cache(self) -> None:
        """Empties the cache. Call it after any change of accounts, rights or endpoints."""
        with self._lock:
            self._valid.clear()

    def delete_expired(self) -> None:
        with self._store.transaction() as session:
            session.execute(delete(Token).where(Token.expires_at < datetime.now(UTC).strftime(TIME_FORMAT)))
            session.execute(delete(DelegatedToken).where(DelegatedToken.digest.not_in(select(Token.digest))))

    def _record(self, session: Session, row: Token, delegated: DelegatedToken | None) -> ValidToken | None:
        user = session.get(User, row.user_id)
        if user is None or not grants.may_log_in(session, user):
            return None
        delegation = delegations.of_token(session, delegated) if delegated is not None else None
        if delegated is not None and delegation is None:
            return None
        body: Json = {
            "methods": row.methods,
            "user": {**_named(session, user), "password_expires_at": None},
            "audit_ids": row.audit_ids,
            "expires_at": row.expires_at,
            "issued_at": row.issued_at,
        }
        roles: list[Role] = []
        services: list[Json] = []
        if row.project_id is not None:
            project = session.get(Project, row.project_id)
            if project is None or not project.enabled or not session.get_one(Domain, project.domain_id).enabled:
                return None
            if delegation is None:
                roles = grants.effective_roles(session, user.id, project.id)
            else:
                roles = delegations.held_roles(session, delegation, project.id)
                body |= delegation.shown
            if not roles:
                return None
            body["project"] = _named(session, project)
            body["is_domain"] = False
            body["roles"] = [{"id": role.id, "name": role.name} for role in roles]
            services = catalog.render(session, project.id)
        caller = Caller(
            user.id, row.project_id, frozenset(role.name for role in roles), bool(delegation and delegation.restricted)
        )
        expires = datetime.strptime(row.expires_at, TIME_FORMAT).replace(tzinfo=UTC).timestamp()
        return ValidToken(row.digest, caller, expires, body, services)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _named(session: Session, row: User | Project) -> Json:
    domain = session.get_one(Domain, row.domain_id)
    return {"id": row.id, "name": row.name, "domain": {"id": domain.id, "name": domain.name}}
