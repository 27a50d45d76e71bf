"""The request context: which user sent a request, with which rights, and under which request id.

The API makes one context for each request. It goes with all work for that request: to the conductor, to computes, into log lines
(oslo.log shows request id, user and project) and into policy checks (`to_policy_values`). It carries the user's token, with
which Causeway calls the services around. RPC messages contain the token, but no message to a host does (`tokenless`): a host may
be compromised. An order with volumes has it sealed, so that a host can only hand it back (`causeway.rpc.key_grants`). Logs
and printed contexts never contain it.

What may be done with the token, and what without it, is decided in `causeway.clients.rights`.
"""

from __future__ import annotations

from typing import Any

from oslo_context import context as oslo_context

HIDDEN = "***"
TOKENS = frozenset({"auth_token", "service_token", "key_grant"})


class RequestContext(oslo_context.RequestContext):  # type: ignore[misc]
    """The context of `oslo.context`, with types and the additional fields of a Compute service.

    A new context becomes the current one of its thread, unless ``overwrite=False`` is given and the thread has one.
    ``resource_uuid`` is the server that the request works on; log lines show it.

    ``checked`` has the ids that other services let this user have while the request was served. ``work`` is None while a request
    is served; in work that was accepted, it has the ids that were checked when the request was. Neither goes to other processes
    with the context: ``checked`` is stored with the operation, and the engine that runs the operation sets ``work``.
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
    #: in an order to a host: what the host shows to be given the keys of the volumes in it (`causeway.rpc.key_grants`)
    key_grant: str | None

    checked: set[str]
    work: frozenset[str] | None

    FROM_DICT_EXTRA_KEYS = ["service_roles", "service_token", "service_user_id", "service_project_id", "key_grant"]

    def __init__(self, *args: Any, **more: Any) -> None:
        self.key_grant = more.pop("key_grant", None)
        super().__init__(*args, **more)
        self.checked, self.work = set(), None

    def has_checked(self, *ids: str) -> None:
        """Notes that a service let the user have these things, unless it is accepted work that asked."""
        if self.work is None:
            self.checked.update(ids)

    @property
    def is_systems(self) -> bool:
        """Whether this is the system's own work: no user's request, and no operation, which a user may have requested."""
        return not self.user_id and not self.auth_token and self.work is None

    def __repr__(self) -> str:
        return (
            f"<RequestContext {self.request_id} user={self.user_id} project={self.project_id}"
            f" roles={','.join(self.roles)} admin={bool(self.is_admin)}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields, with secrets, for RPC. For logs there is `get_logging_values`."""
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
        if self.key_grant is not None:
            values["key_grant"] = self.key_grant
        return values

    def without_tokens(self) -> dict[str, Any]:
        """Returns all fields except the tokens, for `from_dict`. This may be stored."""
        return {name: value for name, value in self.to_dict().items() if name not in TOKENS}

    def tokenless(self, key_grant: str | None = None) -> RequestContext:
        """Returns the same request without the tokens, for hosts."""
        without: RequestContext = RequestContext.from_dict(self.without_tokens(), overwrite=False)
        without.key_grant = key_grant
        return without

    def get_logging_values(self) -> dict[str, Any]:
        """Returns the fields that log lines may show."""
        values: dict[str, Any] = super().get_logging_values()
        values["service_token"] = HIDDEN if self.service_token else None
        return values

    def elevated(self) -> RequestContext:
        """Returns the same request with an administrator's rights, for work that the system does on a user's behalf."""
        values = self.to_dict()
        values["is_admin"] = True
        values["roles"] = sorted({*self.roles, "admin"})
        return self._copy(values)

    def for_another_request(self, request_id: str | None = None) -> RequestContext:
        """Returns the same user with another request id, for an action of its own that follows from this request."""
        values = self.to_dict() | {"request_id": request_id or oslo_context.generate_request_id()}
        return self._copy(values)

    def for_work(self, checked: frozenset[str] | None) -> RequestContext:
        """Returns the same request as work that was accepted, after ``checked`` was checked. For the engine of operations.

        None: release 0.1.0 accepted it, and kept no ids. Such work has the rights of a request that is being served.
        """
        accepted = self._copy(self.to_dict())
        accepted.work = checked
        return accepted

    def _copy(self, values: dict[str, Any]) -> RequestContext:
        copy: RequestContext = RequestContext.from_dict(values, overwrite=False)
        copy.checked, copy.work = set(self.checked), self.work
        return copy


def admin_context(*, request_id: str | None = None, project_id: str | None = None) -> RequestContext:
    """Returns a context for the system's own work (periodic tasks, recovery). It has no user and no token."""
    return RequestContext(request_id=request_id, project_id=project_id, is_admin=True, roles=["admin"], overwrite=False)
