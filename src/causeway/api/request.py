"""The request that a handler gets and the response that it returns; see the manual in `causeway.api`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from causeway.api.services import ApiServices
from causeway.api.versions import Version
from causeway.context import RequestContext

Choice = TypeVar("Choice")
JsonSchema = dict[str, Any]
# (first minor version, last minor version or None for all later ones, schema)
VersionedSchemas = list[tuple[int, int | None, JsonSchema]]
VersionedStatuses = list[tuple[int, int | None, tuple[int, ...]]]

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class ApiRequest:
    """A request that has been authenticated, negotiated, routed and validated.

    ``query``: every parameter with all its values. ``body``: decoded JSON, None if there was none.
    """

    services: ApiServices
    context: RequestContext
    version: Version
    method: str
    path: str
    base_url: str  # scheme, host and what a proxy put in front; without the API's own /v2.1
    api_prefix: str = "/v2.1"
    url_project: str | None = None
    query: dict[str, list[str]] = field(default_factory=dict)
    body: Any = None

    def param(self, name: str) -> str | None:
        """A query parameter's value; the last one, if it has several."""
        values = self.query.get(name)
        return values[-1] if values else None

    def authorize(self, rule: str, target: Mapping[str, Any] | None = None) -> None:
        """Raises Forbidden unless policy allows it. Without a target, it is something of the caller's own."""
        self.services.enforcer.authorize(self.context, rule, target)

    def allows(self, rule: str, target: Mapping[str, Any] | None = None) -> bool:
        return self.services.enforcer.allows(self.context, rule, target)

    @property
    def project_id(self) -> str:
        return self.context.project_id or ""

    @property
    def user_id(self) -> str:
        return self.context.user_id or ""

    def link_root(self, *, versioned: bool = True) -> str:
        """The URL that links to resources begin with."""
        root = self.base_url + (self.api_prefix if versioned else "")
        return f"{root}/{self.url_project}" if self.url_project else root

    def self_url(self, path: str, query: Mapping[str, Any] | list[tuple[str, Any]] | None = None) -> str:
        """The URL of a path below the API's root, such as ``/servers/detail``."""
        url = self.link_root() + path
        return f"{url}?{urlencode(query, doseq=True)}" if query else url


@dataclass(slots=True)
class Response:
    """``body`` becomes the JSON; with None the answer is empty."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    _encoded: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def encoded(self) -> bytes:
        """The body as JSON. It is made once: whoever changes the body does it before."""
        if self._encoded is None:
            self._encoded = _encode(self.body)
        return self._encoded


@dataclass(frozen=True)
class Handler:
    """One operation: the function that does it, and the schemas of what it accepts and answers, by microversion."""

    run: Callable[..., Response]
    answer: VersionedSchemas
    body: VersionedSchemas | None = None
    query: VersionedSchemas | None = None
    statuses: tuple[int, ...] | VersionedStatuses = (200,)

    @property
    def name(self) -> str:
        return f"{self.run.__module__.rpartition('.')[2]}.{self.run.__name__}"

    def statuses_at(self, minor: int) -> tuple[int, ...]:
        """The statuses of successful answers in a minor version."""
        if isinstance(self.statuses, tuple):
            return self.statuses
        return _of_version(self.statuses, minor) or ()


def handler(
    *,
    answer: VersionedSchemas,
    body: VersionedSchemas | None = None,
    query: VersionedSchemas | None = None,
    statuses: tuple[int, ...] | VersionedStatuses = (200,),
) -> Callable[[Callable[..., Response]], Handler]:
    """Makes a handler of a function ``(request, **path parameters) -> Response``.

    ``answer``: the schemas of its answers (`causeway.api.answers`); ``EMPTY``: without a body, ``NEVER``: it only refuses.
    ``body``: there must be a JSON body that fits the version's schema; a version without a schema does not check the body.
    ``query``: the schemas of the query parameters (`causeway.api.schemas.common.query`).
    ``statuses``: the statuses of successful answers, in all versions or by version.
    """

    def make(function: Callable[..., Response]) -> Handler:
        return Handler(function, answer, body, query, statuses)

    return make


def schema_for(schemas: VersionedSchemas, minor: int) -> JsonSchema | None:
    """The schema of a minor version, or None if the version has none."""
    return _of_version(schemas, minor)


def _of_version(choices: list[tuple[int, int | None, Choice]], minor: int) -> Choice | None:
    for first, last, choice in choices:
        if first <= minor and (last is None or minor <= last):
            return choice
    return None
