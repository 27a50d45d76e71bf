"""Who calls: from the headers to the request context.

With ``[api] auth_strategy = keystone``, keystonemiddleware checks the token before a request comes here, and its headers are
trusted. With ``noauth2`` callers say who they are: ``X-Auth-Token: user:project``; the user ``admin`` is an
administrator. That is for tests, never for an API that others can reach.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from oslo_config import cfg

from causeway import errors
from causeway.api.remembered_tokens import RememberedTokens, seconds_for
from causeway.conf import library_defaults
from causeway.context import RequestContext
from causeway.policy import Enforcer

Environ = dict[str, Any]
WsgiApp = Callable[[Environ, Any], Iterable[bytes]]

REQUEST_ID = re.compile(r"^[a-zA-Z0-9-]{1,128}$")
# Keys of a request's environment, for what parts of the API pass to each other.
ENV_REQUEST_ID = "causeway.request_id"
ENV_ROUTE = "causeway.route"


def new_request_id() -> str:
    return f"req-{uuid.uuid4()}"


# What a context knows of its caller, and the header it is in. Only the middleware in front may set these headers.
_IDENTITY = {
    "user_id": "HTTP_X_USER_ID",
    "user_name": "HTTP_X_USER_NAME",
    "user_domain_id": "HTTP_X_USER_DOMAIN_ID",
    "user_domain_name": "HTTP_X_USER_DOMAIN_NAME",
    "project_id": "HTTP_X_PROJECT_ID",
    "project_name": "HTTP_X_PROJECT_NAME",
    "project_domain_id": "HTTP_X_PROJECT_DOMAIN_ID",
    "project_domain_name": "HTTP_X_PROJECT_DOMAIN_NAME",
    "domain_id": "HTTP_X_DOMAIN_ID",
    "system_scope": "HTTP_OPENSTACK_SYSTEM_SCOPE",
    "service_user_id": "HTTP_X_SERVICE_USER_ID",
    "service_project_id": "HTTP_X_SERVICE_PROJECT_ID",
}
_ROLES, _SERVICE_ROLES, _STATUS = "HTTP_X_ROLES", "HTTP_X_SERVICE_ROLES", "HTTP_X_IDENTITY_STATUS"


def context_of(environ: Environ, enforcer: Enforcer) -> RequestContext:
    """The context of a request that the middleware accepted. Raises Unauthorized if it names no user."""
    who = {name: environ.get(header) or None for name, header in _IDENTITY.items()}
    if not who["user_id"] or environ.get(_STATUS, "Confirmed") != "Confirmed":
        raise errors.Unauthorized("The request you have made requires authentication.")
    global_id = environ.get("HTTP_X_OPENSTACK_REQUEST_ID")
    context = RequestContext(
        request_id=environ.get(ENV_REQUEST_ID),
        global_request_id=global_id if global_id and REQUEST_ID.match(global_id) else None,
        roles=_roles(environ.get(_ROLES)),
        service_roles=_roles(environ.get(_SERVICE_ROLES)),
        auth_token=environ.get("HTTP_X_AUTH_TOKEN"),
        service_token=environ.get("HTTP_X_SERVICE_TOKEN"),
        is_admin=False,
        **who,
    )
    context.is_admin = enforcer.is_admin(context)
    return context


def _roles(header: str | None) -> list[str]:
    return [role.strip() for role in header.split(",") if role.strip()] if header else []


def noauth2(app: WsgiApp) -> WsgiApp:
    """Trusts ``X-Auth-Token: user:project``. If there is no project, it has the user's name."""

    def authenticate(environ: Environ, start_response: Any) -> Iterable[bytes]:
        for name in [
            name
            for name in environ
            if name.startswith(("HTTP_X_USER", "HTTP_X_PROJECT", "HTTP_X_ROLES", "HTTP_X_SERVICE_ROLES"))
        ]:
            del environ[name]
        # It is no token of an Identity service, so no service around is called with it.
        token = environ.pop("HTTP_X_AUTH_TOKEN", None)
        if token:
            user, _colon, project = token.partition(":")
            environ["HTTP_X_USER_ID"] = environ["HTTP_X_USER_NAME"] = user
            environ["HTTP_X_PROJECT_ID"] = environ["HTTP_X_PROJECT_NAME"] = project or user
            # The service users of a cloud, by the names they have in it.
            roles = {"admin": "admin,manager,member,reader", "service": "service", "manager": "manager,member,reader"}
            environ["HTTP_X_ROLES"] = roles.get(user, "member,reader")
            environ["HTTP_X_IDENTITY_STATUS"] = "Confirmed"
        return app(environ, start_response)

    return authenticate


def keystone(app: WsgiApp, conf: cfg.ConfigOpts) -> WsgiApp:
    """``app`` behind keystonemiddleware (``[keystone_authtoken]``), which does not see tokens that it accepted recently.

    ``token_cache_time`` limits how long a token that was revoked is still let through.
    """
    from keystonemiddleware import auth_token, opts

    for group, options in opts.list_auth_token_opts():
        conf.register_opts(options, group=group)
    library_defaults.set_defaults(conf)
    cached = conf.keystone_authtoken.token_cache_time
    seconds = seconds_for(cached)
    remembered = RememberedTokens([*_IDENTITY.values(), _ROLES, _SERVICE_ROLES, _STATUS], seconds)

    def behind(environ: Environ, start_response: Any) -> Iterable[bytes]:
        if seconds:
            remembered.keep(environ)
        return app(environ, start_response)

    protected = auth_token.AuthProtocol(behind, {"oslo_config_config": conf, "token_cache_time": cached - seconds})

    def authenticate(environ: Environ, start_response: Any) -> Iterable[bytes]:
        # keystonemiddleware also takes a token from here, and the context would have none.
        environ.pop("HTTP_X_STORAGE_TOKEN", None)
        if not remembered.recognise(environ):
            answer: Iterable[bytes] = protected(environ, start_response)
            return answer

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            if status.startswith("401"):
                # A service that this one calls for the user did not accept the token.
                remembered.discard(environ)
                headers = [*headers, ("WWW-Authenticate", f'Keystone uri="{protected.www_authenticate_uri}"')]
            return start_response(status, headers, *more)

        return app(environ, start)

    return authenticate
