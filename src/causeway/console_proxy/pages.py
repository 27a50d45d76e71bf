"""The files that the proxy serves: its own pages, and those of noVNC."""

from __future__ import annotations

import mimetypes
import posixpath
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote, urlsplit

from oslo_config import cfg

OWN = ("consoles.css", "screen.html", "screen.js", "serial.html", "serial.js")
HEADERS = {
    # Tokens are in URLs.
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


def frame_headers(conf: cfg.ConfigOpts) -> dict[str, str]:
    """Which pages may show ours in a frame: those of the proxy itself, and those of the listed sites."""
    others: list[str] = conf.console.frame_ancestors
    headers = {"Content-Security-Policy": " ".join(["frame-ancestors", "'self'", *others])}
    # For old browsers. It can't name other sites, and would forbid them.
    return headers if others else headers | {"X-Frame-Options": "SAMEORIGIN"}


def read(conf: cfg.ConfigOpts, url: str) -> tuple[bytes, str] | None:
    """A file's content and kind; None if there is no such file. Directories are not listed."""
    # ".." can't lead out of the folder: normpath stops at the root.
    path = posixpath.normpath("/" + unquote(urlsplit(url).path)).lstrip("/")
    if path in OWN:
        content = files("causeway.console_proxy").joinpath("static", path).read_bytes()
    else:
        found = _found(conf, path)
        if found is None:
            return None
        content = found.read_bytes()
    return content, mimetypes.guess_type(path)[0] or "application/octet-stream"


def _found(conf: cfg.ConfigOpts, path: str) -> Path | None:
    try:
        found = Path(conf.console.novnc_path) / path
        return found if found.is_file() else None
    except (OSError, ValueError):
        return None
