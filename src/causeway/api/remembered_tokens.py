"""Callers whose tokens keystonemiddleware has just let through, remembered for some seconds.

keystonemiddleware remembers what the Identity service said of a token (``[keystone_authtoken] token_cache_time``), but reads that
anew for each request, which takes longer than the request's statements. What it made of a token is kept here for `SECONDS`; by so
much less it remembers itself, so that a token which was revoked is let through for no longer than ``token_cache_time``, as ever.

Not remembered is what depends on more than the token: one with access rules (of an application credential), one that is bound to
something, a request that comes with a service token. One that has expired is not let through however short ago it was seen.
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
# Callers; more are there only while somebody makes tokens in a row.
MOST = 10_000

_TOKEN, _SERVICE_TOKEN = "HTTP_X_AUTH_TOKEN", "HTTP_X_SERVICE_TOKEN"
# Where keystonemiddleware leaves what the Identity service said.
_TOKEN_INFO = "keystone.token_info"


def seconds_for(token_cache_time: int) -> int:
    """How long tokens are remembered here; 0: not at all, for they are hardly to be remembered anywhere."""
    return SECONDS if token_cache_time >= 2 * SECONDS else 0


@dataclass(frozen=True, slots=True)
class _Caller:
    # The headers of `RememberedTokens`; None: not set.
    identity: dict[str, str | None]
    until: float
    expires: datetime


class RememberedTokens:
    """``headers``: all that the application believes of a caller, as names in a WSGI environment."""

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
        """Whether the caller is remembered: then all headers of theirs say what they said, whatever the request says."""
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
        """To be called behind keystonemiddleware, with what it has made of a request."""
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
        """Somebody behind us refused the token: it is looked at again."""
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
    """Not the token itself, which is nobody's business."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
