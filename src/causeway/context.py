"""The request context: who asks, on whose behalf, and under which request id.

One context is made per API request and travels with everything that request causes: through the conductor, to computes,
into log lines (oslo.log shows request id, user and project of the context a thread works for) and to policy checks
(`to_policy_values`). It carries the user's token, because services around us are called with it; the token is in what
crosses RPC, and nowhere in what is logged or printed.
"""

from __future__ import annotations

from typing import Any

from oslo_context import context as oslo_context

HIDDEN = "***"
TOKENS = frozenset({"auth_token", "service_token"})


class RequestContext(oslo_context.RequestContext):  # type: ignore[misc]
    """A context of the field's kind (`oslo.context`), typed, with what a Compute service needs in addition.

    Making one makes it the current context of the thread, unless ``overwrite=False`` and there is one already.
    ``resource_uuid`` is the server at hand: log lines show it.
    """

    request_id: str
    global_request_id: str | None
    user_id: str | None
    user_name: str | None
    user_domain_id: str | None
    project_id: str | None
    project_name: str | None
    project_domain_id: str | None
    roles: list[str]
    service_roles: list[str]
    auth_token: str | None
    service_token: str | None
    resource_uuid: str | None

    FROM_DICT_EXTRA_KEYS = ["service_roles", "service_token", "service_user_id", "service_project_id"]

    def __repr__(self) -> str:
        return (
            f"<RequestContext {self.request_id} user={self.user_id} project={self.project_id}"
            f" roles={','.join(self.roles)} admin={bool(self.is_admin)}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, secrets included: what crosses RPC. For logs there is `get_logging_values`."""
        values: dict[str, Any] = super().to_dict()
        values.update(
            user_name=self.user_name,
            project_name=self.project_name,
            domain_name=self.domain_name,
            user_domain_name=self.user_domain_name,
            project_domain_name=self.project_domain_name,
            service_roles=self.service_roles,
            service_token=self.service_token,
            service_user_id=self.service_user_id,
            service_project_id=self.service_project_id,
        )
        return values

    def without_tokens(self) -> dict[str, Any]:
        """Everything but tokens, for `from_dict`: what may be written down."""
        return {name: value for name, value in self.to_dict().items() if name not in TOKENS}

    def get_logging_values(self) -> dict[str, Any]:
        """What a log line may show."""
        values: dict[str, Any] = super().get_logging_values()
        values["service_token"] = HIDDEN if self.service_token else None
        return values

    def elevated(self) -> RequestContext:
        """The same request, with an administrator's rights: for what the system does on a user's behalf."""
        values = self.to_dict()
        values["is_admin"] = True
        values["roles"] = sorted({*self.roles, "admin"})
        elevated: RequestContext = RequestContext.from_dict(values, overwrite=False)
        return elevated

    def for_another_request(self, request_id: str | None = None) -> RequestContext:
        """The same user with a request id of its own: for what a request entails that is an action in itself."""
        values = self.to_dict() | {"request_id": request_id or oslo_context.generate_request_id()}
        other: RequestContext = RequestContext.from_dict(values, overwrite=False)
        return other


def admin_context(*, request_id: str | None = None, project_id: str | None = None) -> RequestContext:
    """A context for what the system does on its own account (periodic tasks, recovery): no user and no token."""
    return RequestContext(request_id=request_id, project_id=project_id, is_admin=True, roles=["admin"], overwrite=False)
