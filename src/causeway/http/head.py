"""What the head of a request says of the body behind it.

Whoever stands before a server of ours must find the same end of a request as we do, or what is a body to the one is the next
request to the other. So what could be read in two ways is malformed, and is answered with 400.
"""

from __future__ import annotations

import re

_FIELDS = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n)*+")
_FRAMING = re.compile(
    rb"^(content-length|transfer-encoding|expect):[ \t]*([^\r\n]*?)[ \t]*\r$", re.IGNORECASE | re.MULTILINE
)
_LENGTH = re.compile(rb"[0-9]{1,18}")


class MalformedHead(ValueError):
    """Its words are for the client."""


def body_length(fields: bytes) -> int | None:
    """``fields``: the lines between the first of the head and the empty one, each with its CRLF. Raises MalformedHead.

    None: the head does not say how long the body is, or the client waits for "100 Continue".
    """
    if not _FIELDS.fullmatch(fields):
        raise MalformedHead("A line of the head is no header.")
    found: dict[bytes, list[bytes]] = {}
    for name, value in _FRAMING.findall(fields):
        found.setdefault(name.lower(), []).append(value)
    lengths, codings = found.get(b"content-length", []), found.get(b"transfer-encoding", [])
    if len(lengths) + bool(codings) > 1:
        raise MalformedHead("The head says more than once how long the body is.")
    if codings:
        _check_codings(b",".join(codings))
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        raise MalformedHead("The header Content-Length is no number of bytes.")
    if codings or b"expect" in found:
        return None
    return int(lengths[0]) if lengths else 0


def _check_codings(value: bytes) -> None:
    codings = [coding.strip().lower() for coding in value.split(b",")]
    if codings[-1] != b"chunked" or codings.count(b"chunked") > 1:
        raise MalformedHead("The header Transfer-Encoding does not end with chunked.")


__all__ = ["MalformedHead", "body_length"]
