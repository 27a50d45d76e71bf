"""/v3/auth: tokens from passwords, application credentials, trusts or other tokens, their validation and revocation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from causeway.devcloud.access import catalog, grants
from causeway.devcloud.access.passwords import check_password
from causeway.devcloud.access.tokens import ValidToken
from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import ApiError, bad_request, forbidden, not_found
from causeway.devcloud.identity import accounts, credentials, trusts, views
from causeway.devcloud.tables.delegation import ApplicationCredential, DelegatedToken
from causeway.devcloud.tables.identity import Domain, Project, User
from causeway.devcloud.web import Call


@dataclass(frozen=True, slots=True)
class _Login:
    """Who logs in. `project_id`: the scope if none is asked for; `credential`: by which, if not as the user alone."""

    user: User
    project_id: str | None
    expires_at: str | None = None
    credential: ApplicationCredential | None = None


def issue(call: Call) -> Json:
    auth = call.body("auth")
    identity = _object(auth, "identity")
    methods = identity.get("methods")
    if not isinstance(methods, list) or len(methods) != 1 or methods[0] not in METHODS:
        raise bad_request(f"auth.identity.methods must have one of: {', '.join(METHODS)}.")
    login = METHODS[methods[0]](call, identity)
    scope = auth.get("scope")
    user, by = login.user, login.credential
    if by is not None:
        project = _scope(call.session, scope, by.project_id)
        if project is None or project.id != by.project_id or (scope is not None and methods[0] != "token"):
            raise ApiError(401, "Application credentials cannot request a scope.", "Unauthorized")
        token, record = call.cloud.tokens.issue(call.session, user, project, methods, login.expires_at, by)
    elif isinstance(scope, dict) and "OS-TRUST:trust" in scope:
        trust = trusts.use(call, _object(scope, "OS-TRUST:trust").get("id"), user)
        if trust.impersonation:
            user = accounts.get_user(call.session, trust.trustor_id)
        project = accounts.get_project(call.session, trust.project_id)
        token, record = call.cloud.tokens.issue(call.session, user, project, methods, login.expires_at, trust)
    else:
        unscoped = scope == "unscoped" or (isinstance(scope, dict) and "unscoped" in scope)
        project = None if unscoped else _scope(call.session, scope, login.project_id or user.default_project_id)
        token, record = call.cloud.tokens.issue(call.session, user, project, methods, login.expires_at)
    if record is None:
        raise _unauthorized()
    call.response.set_header("X-Subject-Token", token)
    call.response.set_header("Vary", "X-Auth-Token")
    return {"token": _body(call, record)}


def _by_password(call: Call, identity: Json) -> _Login:
    given = _object(_object(identity, "password"), "user")
    password = given.get("password")
    if not isinstance(password, str):
        raise bad_request("auth.identity.password.user needs a password.")
    user = _user(call.session, given)
    if user is None or not user.enabled or not check_password(password, user.password_hash):
        raise _unauthorized()
    return _Login(user, None)


def _by_token(call: Call, identity: Json) -> _Login:
    given = call.cloud.tokens.find(_object(identity, "token").get("id"))
    if given is None:
        raise _unauthorized()
    delegated = call.session.get(DelegatedToken, given.digest)
    if delegated is not None and delegated.trust_id is not None:
        raise forbidden("A token of a trust cannot be used to create another token. Use the trust once more instead.")
    credential = call.session.get(ApplicationCredential, delegated.credential_id) if delegated is not None else None
    user = call.session.get_one(User, given.caller.user_id)
    return _Login(user, given.caller.project_id, str(given.body["expires_at"]), credential)


def _by_credential(call: Call, identity: Json) -> _Login:
    given = _object(identity, "application_credential")
    user = None if isinstance(given.get("id"), str) else _user(call.session, _object(given, "user"))
    credential = credentials.log_in(call, given, user.id if user is not None else None)
    if credential is None:
        raise _unauthorized()
    return _Login(call.session.get_one(User, credential.user_id), credential.project_id, None, credential)


METHODS: dict[str, Callable[[Call, Json], _Login]] = {
    "password": _by_password,
    "token": _by_token,
    "application_credential": _by_credential,
}


def validate(call: Call) -> Json:
    subject = call.request.get_header("X-Subject-Token")
    if not subject:
        raise bad_request("The X-Subject-Token header is missing.")
    record = call.cloud.tokens.find(subject)
    if record is None:
        raise not_found("Could not find token.")
    if not call.caller.is_privileged and record.caller != call.caller:
        raise forbidden()
    call.response.set_header("X-Subject-Token", subject)
    call.response.set_header("Vary", "X-Auth-Token")
    return {"token": _body(call, record)}


def revoke(call: Call) -> None:
    record = call.cloud.tokens.find(call.request.get_header("X-Subject-Token"))
    if record is None:
        raise not_found("Could not find token.")
    if not call.caller.is_admin and record.caller.user_id != call.caller.user_id:
        raise forbidden()
    call.cloud.tokens.revoke(call.session, record.digest)


def list_projects(call: Call) -> Json:
    rows = grants.projects_of(call.session, call.caller.user_id)
    return views.collection(call, "projects", [views.project(call, row) for row in rows if row.enabled])


def list_domains(call: Call) -> Json:
    return views.collection(call, "domains", [views.domain(call, row) for row in call.session.scalars(select(Domain))])


def list_system(_call: Call) -> Json:
    return {"system": []}


def show_catalog(call: Call) -> Json:
    return views.collection(call, "catalog", catalog.render(call.session, call.project_id))


def _body(call: Call, record: ValidToken) -> Json:
    if record.caller.project_id is None or "nocatalog" in call.request.params:
        return record.body
    return {**record.body, "catalog": record.catalog}


def _user(session: Session, given: Json) -> User | None:
    """The user whom a request names; None if there is none."""
    if isinstance(given.get("id"), str):
        return session.get(User, given["id"])
    if not isinstance(given.get("name"), str):
        raise bad_request("A user needs an id or a name.")
    domain = _domain(session, given.get("domain"))
    if domain is None:
        return None
    return session.scalars(select(User).where(User.name == given["name"], User.domain_id == domain.id)).first()


def _scope(session: Session, scope: Any, default_project_id: str | None) -> Project | None:
    if scope is None:
        return session.get(Project, default_project_id) if default_project_id else None
    wanted = scope.get("project") if isinstance(scope, dict) else None
    if not isinstance(wanted, dict):
        raise ApiError(401, "Only project scope is offered here.", "Unauthorized")
    project = None
    if isinstance(wanted.get("id"), str):
        project = session.get(Project, wanted["id"])
    elif isinstance(wanted.get("name"), str):
        domain = _domain(session, wanted.get("domain"))
        if domain is not None:
            query = select(Project).where(Project.name == wanted["name"], Project.domain_id == domain.id)
            project = session.scalars(query).first()
    if project is None or not project.enabled:
        raise _unauthorized()
    return project


def _domain(session: Session, given: Any) -> Domain | None:
    if not isinstance(given, dict):
        raise bad_request("A name needs its domain, by id or by name.")
    if isinstance(given.get("id"), str):
        return session.get(Domain, given["id"])
    return session.scalars(select(Domain).where(Domain.name == str(given.get("name")))).first()


def _object(parent: Json, key: str) -> Json:
    value = parent.get(key)
    if not isinstance(value, dict):
        raise bad_request(f"'{key}' must be an object.")
    return value


def _unauthorized() -> ApiError:
    return ApiError(401, "The request you have made requires authentication.", "Unauthorized")
