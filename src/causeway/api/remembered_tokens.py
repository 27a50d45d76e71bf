"""Remembers for some seconds the callers whose tokens keystonemiddleware has accepted.

keystonemiddleware caches what the Identity service says of a token (``[keystone_authtoken] token_cache_time``), but evaluates it
anew for each request, which takes longer than the request's statements. The result is kept here for `SECONDS`, and
keystonemiddleware's own cache is shortened by as much: so a revoked token is accepted no longer than ``token_cache_time``.
What its user names is refused even then (`causeway.clients.rights`): the services around look the token up themselves.

Requests that depend on more than the token are not remembered: those with access rules (of an application credential), with a
token that is bound to something, or with a service token. An expired token is never accepted.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from keystoneauth1 import access

Environ = dict[str, Any]

SECONDS = 5
# The most callers that are remembered. There are more only while somebody makes one token after another.
MOST = 10_000

_TOKEN, _SERVICE_TOKEN = "HTTP_X_AUTH_TOKEN", "HTTP_X_SERVICE_TOKEN"
# Where keystonemiddleware puts what the Identity service said.
_TOKEN_INFO = "keystone.token_info"


def seconds_for(token_cache_time: int) -> int:
    """How long tokens are remembered here, in seconds; 0 if ``token_cache_time`` is too short to be divided."""
    return SECONDS if token_cache_time >= 2 * SECONDS else 0


@dataclass(frozen=True, slots=True)
class _Caller:
    # The headers of `RememberedTokens`; None: not set.
    identity: dict[str, str | None]
    until: float
    expires: datetime


class RememberedTokens:
    """``headers``: all that the application trusts about a caller, by their names in a WSGI environment."""

    def __init__(
        self,
        headers: Iterable[str],
        seconds: float = SECONDS,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._headers = tuple(headers)
        self._seconds = seconds
        self._clock = clock
        self._now = now
        self._callers: dict[bytes, _Caller] = {}
        self._lock = threading.Lock()

    def recognise(self, environ: Environ) -> bool:
        """Whether the caller is remembered. If so, the headers are set to the remembered ones, whatever the request has."""
        token = environ.get(_TOKEN)
        if not token or _SERVICE_TOKEN in environ:
            return False
        caller = self._callers.get(_key(token))
        if caller is None or self._clock() >= caller.until or self._now() >= caller.expires:
            return False
        for header, value in caller.identity.items():
            if value is None:
                environ.pop(header, None)
            else:
                environ[header] = value
        return True

    def keep(self, environ: Environ) -> None:
        """Remembers the caller of a request that keystonemiddleware has accepted; call it behind keystonemiddleware."""
        token, info = environ.get(_TOKEN), environ.get(_TOKEN_INFO)
        if not token or not info or _SERVICE_TOKEN in environ or environ.get("HTTP_X_IDENTITY_STATUS") != "Confirmed":
            return
        content = info.get("token", {})
        if content.get("bind") or (content.get("application_credential") or {}).get("access_rules") is not None:
            return
        expires = access.create(body=info, auth_token=token).expires
        identity = {header: environ.get(header) for header in self._headers}
        with self._lock:
            if len(self._callers) >= MOST:
                self._discard_old()
            self._callers[_key(token)] = _Caller(identity, self._clock() + self._seconds, expires)

    def discard(self, environ: Environ) -> None:
        """Ends the memory of a token that another service refused: it is checked again."""
        token = environ.get(_TOKEN)
        if token:
            with self._lock:
                self._callers.pop(_key(token), None)

    def _discard_old(self) -> None:
        now = self._clock()
        self._callers = {key: caller for key, caller in self._callers.items() if caller.until > now}
        if len(self._callers) >= MOST:
            self._callers = {}


def _key(token: str) -> bytes:
    """A hash: the token itself is not kept."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
