"""Who calls: from the headers to the request context.

With ``[api] auth_strategy = keystone`` keystonemiddleware stands in front and has checked the token; its headers are
believed. With ``noauth2`` the caller says who they are: ``X-Auth-Token: user:project``; the user ``admin`` is an
administrator. That is for tests, never for what others can reach.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from oslo_config import cfg

from causeway import errors
from causeway.context import RequestContext
from causeway.policy import Enforcer

Environ = dict[str, Any]
WsgiApp = Callable[[Environ, Any], Iterable[bytes]]

REQUEST_ID = re.compile(r"^[a-zA-Z0-9-]{1,128}$")
# Where the pieces of the API leave things for one another.
ENV_REQUEST_ID = "causeway.request_id"
ENV_ROUTE = "causeway.route"


def new_request_id() -> str:
    return f"req-{uuid.uuid4()}"


def context_of(environ: Environ, enforcer: Enforcer) -> RequestContext:
    """The context of a request that was let through; raises Unauthorized if it names nobody."""
    user_id = environ.get("HTTP_X_USER_ID")
    if not user_id or environ.get("HTTP_X_IDENTITY_STATUS", "Confirmed") != "Confirmed":
        raise errors.Unauthorized("The request you have made requires authentication.")
    global_id = environ.get("HTTP_X_OPENSTACK_REQUEST_ID")
    context = RequestContext(
        request_id=environ.get(ENV_REQUEST_ID),
        global_request_id=global_id if global_id and REQUEST_ID.match(global_id) else None,
        user_id=user_id,
        user_name=environ.get("HTTP_X_USER_NAME"),
        user_domain_id=environ.get("HTTP_X_USER_DOMAIN_ID"),
        user_domain_name=environ.get("HTTP_X_USER_DOMAIN_NAME"),
        project_id=environ.get("HTTP_X_PROJECT_ID") or None,
        project_name=environ.get("HTTP_X_PROJECT_NAME"),
        project_domain_id=environ.get("HTTP_X_PROJECT_DOMAIN_ID"),
        project_domain_name=environ.get("HTTP_X_PROJECT_DOMAIN_NAME"),
        system_scope=environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE"),
        roles=_roles(environ.get("HTTP_X_ROLES")),
        service_roles=_roles(environ.get("HTTP_X_SERVICE_ROLES")),
        auth_token=environ.get("HTTP_X_AUTH_TOKEN"),
        service_token=environ.get("HTTP_X_SERVICE_TOKEN"),
        service_user_id=environ.get("HTTP_X_SERVICE_USER_ID"),
        service_project_id=environ.get("HTTP_X_SERVICE_PROJECT_ID"),
        is_admin=False,
    )
    context.is_admin = enforcer.is_admin(context)
    return context


def _roles(header: str | None) -> list[str]:
    return [role.strip() for role in header.split(",") if role.strip()] if header else []


def noauth2(app: WsgiApp) -> WsgiApp:
    """Believes ``X-Auth-Token: user:project`` (project left out: named like the user)."""

    def authenticate(environ: Environ, start_response: Any) -> Iterable[bytes]:
        for name in [
            name
            for name in environ
            if name.startswith(("HTTP_X_USER", "HTTP_X_PROJECT", "HTTP_X_ROLES", "HTTP_X_SERVICE_ROLES"))
        ]:
            del environ[name]
        token = environ.get("HTTP_X_AUTH_TOKEN")
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
    """keystonemiddleware, with the options of ``[keystone_authtoken]``."""
    from keystonemiddleware import auth_token

    protected: WsgiApp = auth_token.AuthProtocol(app, {"oslo_config_config": conf})
    return protected
