"""Which pages may open consoles, and where a request has its token."""

from __future__ import annotations

import pytest

from causeway.console_proxy.admission import origin_is_allowed, token_of
from causeway.model.console import Ending

HTTP, WSS = "http://proxy:6080/vnc_auto.html", "wss://proxy:6083/"


@pytest.mark.parametrize(
    ("origin", "host", "forwarded", "base", "may"),
    [
        # No browser.
        (None, "proxy:6080", None, HTTP, True),
        ("http://proxy:6080", "proxy:6080", None, HTTP, True),
        # Ports are not compared: as in Nova.
        ("http://proxy", "proxy:6080", None, HTTP, True),
        ("http://other", "proxy:6080", None, HTTP, False),
        ("http://allowed:99", "proxy:6080", None, HTTP, True),
        ("https://proxy", "proxy:6080", None, HTTP, False),
        ("http://proxy", "proxy:6080", "https", "https://proxy/", True),
        ("https://proxy", "proxy:6083", None, WSS, True),
        ("http://proxy", "proxy:6083", None, WSS, False),
        ("http://[::1]:6080", "[::1]:6080", None, HTTP, True),
        ("null", "proxy:6080", None, HTTP, False),
        ("http://", "proxy:6080", None, HTTP, False),
        ("http://[broken", "proxy:6080", None, HTTP, False),
        ("http://proxy", None, None, HTTP, False),
        ("http://proxy", "[broken", None, HTTP, False),
    ],
)
def test_only_allowed_origins_open_consoles(
    origin: str | None, host: str | None, forwarded: str | None, base: str, may: bool
) -> None:
    assert origin_is_allowed(origin, host, forwarded, ["allowed"], base) is may


@pytest.mark.parametrize(
    ("path", "cookies", "token"),
    [
        ("/?token=abc", None, "abc"),
        ("/websockify?x=1&token=abc", "token=other", "abc"),
        ("/websockify", "session=1; token=abc", "abc"),
        ("/", None, None),
        ("/?token=", "", None),
        ("/", "bad\x01cookie;;;=", None),
    ],
)
def test_the_token_is_found_in_path_or_cookie(path: str, cookies: str | None, token: str | None) -> None:
    assert token_of(path, cookies) == token


@pytest.mark.parametrize("ending", list(Ending))
def test_a_reason_fits_into_a_close(ending: Ending) -> None:
    assert len(ending.sentence("11111111-2222-3333-4444-555555555555").encode()) <= 123
