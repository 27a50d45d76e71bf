"""Access to the console: a token that opens it once, from then on a cookie and a secret path, and a secret in each form.

Browsers send cookies to every port of a host, so another program of this machine may get those of 127.0.0.1. The cookie of a
session is bound to a path that begins with a secret: browsers send it nowhere else, and neither is of use without the other.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie

# Names under which a browser may call us. A page that got our address from a hostile name server uses another one.
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    # For old browsers; as frame-ancestors.
    "X-Frame-Options": "DENY",
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

    def session(self, cookies: str | None, place: str, host: str | None) -> str | None:
        """The session that a request's cookies and its secret path belong to; None if they do not."""
        try:
            morsel = SimpleCookie(cookies or "").get(cookie_name(host))
        except CookieError:
            return None
        if morsel is None or morsel.value not in self._sessions:
            return None
        return morsel.value if hmac.compare_digest(place.encode(), self.place(morsel.value).encode()) else None

    def place(self, session: str) -> str:
        """The secret that the paths of a session's pages begin with."""
        return hmac.new(self._key, f"place {session}".encode(), sha256).hexdigest()[:32]

    def secret(self, session: str) -> str:
        """The secret in a session's forms, which other sites can't know."""
        return hmac.new(self._key, session.encode(), sha256).hexdigest()

    def is_own_form(self, session: str, given: object) -> bool:
        return isinstance(given, str) and hmac.compare_digest(given.encode(), self.secret(session).encode())


def cookie_name(host: str | None) -> str:
    """The name of the cookie, with the port: consoles of one machine must not replace each other's."""
    port = (host or "").rpartition(":")[2]
    return f"causeway-console-{port if port.isascii() and port.isdigit() else 'default'}"


def is_loopback(host: str | None) -> bool:
    """Whether a request's header Host names this machine itself."""
    name = (host or "").rsplit(":", 1)[0] if not (host or "").endswith("]") else host
    return name in LOOPBACK
