"""Access to the console: a token that opens it once, a cookie from then on, and a secret in each form."""

from __future__ import annotations

import hmac
import secrets
import threading
from hashlib import sha256
from http.cookies import SimpleCookie

COOKIE = "causeway_console"
# Names under which a browser may call us. A page that got our address from a hostile name server uses another one.
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    # Not "no-referrer": browsers would say "null" as the origin of our own forms.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Sessions:
    """Sessions live as long as the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._token: str | None = secrets.token_urlsafe(24)
        self._sessions: set[str] = set()
        self._key = secrets.token_bytes(32)

    @property
    def token(self) -> str:
        """Opens the console once. Raises ValueError if it was used."""
        if self._token is None:
            raise ValueError("The console was opened already.")
        return self._token

    def enter(self, token: str) -> str | None:
        """A new session for the holder of the token; None if the token is wrong or was used."""
        with self._lock:
            if self._token is None or not hmac.compare_digest(token.encode(), self._token.encode()):
                return None
            self._token = None
            session = secrets.token_urlsafe(32)
            self._sessions.add(session)
        return session

    def session(self, cookies: str | None) -> str | None:
        """The session in a request's cookies; None if there is none."""
        morsel = SimpleCookie(cookies or "").get(COOKIE)
        return morsel.value if morsel is not None and morsel.value in self._sessions else None

    def secret(self, session: str) -> str:
        """The secret in a session's forms, which other sites can't know."""
        return hmac.new(self._key, session.encode(), sha256).hexdigest()

    def is_own_form(self, session: str, given: str | None) -> bool:
        return given is not None and hmac.compare_digest(given.encode(), self.secret(session).encode())


def is_loopback(host: str | None) -> bool:
    """Whether a request's header Host names this machine itself."""
    name = (host or "").rsplit(":", 1)[0] if not (host or "").endswith("]") else host
    return name in LOOPBACK
