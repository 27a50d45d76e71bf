"""Whether a console may be opened, and where it is."""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from oslo_config import cfg

from causeway import errors
from causeway.context import admin_context
from causeway.model.console import ConsoleToken, Ending
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import console_tokens
from causeway.store.cells import Cells
from causeway.store.consoles import standings

LOG = logging.getLogger(__name__)

# Codes of a WebSocket's close: by a rule of ours, and for a failure here.
BY_RULE, FAILED = 1008, 1011
_PLAIN = {"ws": "http", "wss": "https"}


class Refused(Exception):
    """A console can't be opened. ``code`` and ``reason`` are those of the WebSocket's close, which the user sees."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


@dataclass
class Admitted:
    """``seconds``: how long the token is still valid."""

    token: ConsoleToken
    seconds: float


def token_of(path: str, cookies: str | None) -> str | None:
    """The token of a request: from its URL or, as some pages send it, from a cookie. None if there is none."""
    in_url = parse_qs(urlsplit(path).query).get("token")
    if in_url:
        return in_url[-1]
    try:
        morsel = SimpleCookie(cookies or "").get("token")
    except CookieError:
        return None
    return morsel.value if morsel is not None else None


def origin_is_allowed(
    origin: str | None, host: str | None, forwarded: str | None, allowed: Sequence[str], base: str
) -> bool:
    """Whether a page may open a console. ``host``: the name that the request used; ``base``: the console's base URL.

    As in Nova: without an Origin it is not a browser. Else the origin must be the proxy's own name, or an allowed one, and
    have the scheme of the base URL. ``forwarded``: X-Forwarded-Proto of a proxy in front of us.
    """
    if not origin:
        return True
    try:
        from_page, by_name = urlsplit(origin), urlsplit(f"//{host or ''}")
        names = [by_name.hostname, *allowed]
    except ValueError:
        return False
    if not from_page.hostname or not from_page.scheme or from_page.hostname not in names:
        return False
    scheme, wanted = forwarded or from_page.scheme, urlsplit(base).scheme
    return scheme in (wanted, _PLAIN.get(wanted, wanted))


class Admission:
    """Admits users to consoles. ``conductor`` says where a console is now."""

    def __init__(self, conf: cfg.ConfigOpts, cells: Cells, conductor: ConductorClient) -> None:
        self._conf, self._cells, self._conductor = conf, cells, conductor

    def admit(self, token: str | None, origin: str | None, host: str | None, forwarded: str | None) -> Admitted:
        """The console that the token opens. Raises Refused."""
        try:
            found = console_tokens.find(self._cells.api, token) if token else None
        except errors.CausewayError as failure:
            raise Refused(FAILED, failure.message) from failure
        if found is None:
            raise Refused(BY_RULE, Ending.UNKNOWN.sentence())
        opened, seconds = found
        if not origin_is_allowed(origin, host, forwarded, self._conf.console.allowed_origins, opened.access_url_base):
            LOG.warning("A page of %s wanted to open a console of server %s", origin, opened.instance_uuid)
            raise Refused(BY_RULE, "Pages of this site may not open consoles ([console] allowed_origins)")
        self._check(opened)
        return Admitted(opened, seconds)

    def _check(self, token: ConsoleToken) -> None:
        """Raises Refused unless the server is where it was, and its console listens where it did."""
        try:
            standing = standings(self._cells, [token]).get(token.token_hash)
            if standing is None:
                raise Refused(FAILED, "The cell of the server does not answer now; try again later")
            if standing.ending is not None:
                raise Refused(BY_RULE, standing.ending.sentence(token.instance_uuid))
            place = self._conductor.get_console(
                admin_context(), instance_uuid=token.instance_uuid, console_type=token.console_type
            )
        except errors.GuestFailed as failure:
            raise Refused(BY_RULE, Ending.STOPPED.sentence(token.instance_uuid)) from failure
        except errors.CausewayError as failure:
            LOG.warning("A console of server %s: %s %s", token.instance_uuid, failure.message, failure.details)
            raise Refused(FAILED, failure.message) from failure
        if (place.cell_uuid, place.compute_host) != (token.cell_uuid, token.compute_host):
            raise Refused(BY_RULE, Ending.MOVED.sentence(token.instance_uuid))
        if (place.address.host, place.address.port) != (token.host, token.port):
            raise Refused(BY_RULE, Ending.RESTARTED.sentence(token.instance_uuid))

    def connect(self, token: ConsoleToken) -> socket.socket:
        """A connection to the console. Raises Refused."""
        try:
            return socket.create_connection((token.host, token.port), timeout=self._conf.console.connect_timeout)
        except OSError as failure:
            LOG.warning("The console of server %s at %s:%s: %s", token.instance_uuid, token.host, token.port, failure)
            raise Refused(FAILED, "The console of the guest does not answer; try again later") from failure
