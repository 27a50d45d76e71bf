"""Reads from the head of a request how long its body is.

A proxy in front of our servers must find the same end of a request as we do, or one's body is the other's next request. So a
head that could be read in two ways is malformed, and is answered with 400.
"""

from __future__ import annotations

import re

_FIELDS = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n)*+")
_FRAMING = re.compile(
    rb"^(content-length|transfer-encoding|expect):[ \t]*([^\r\n]*?)[ \t]*\r$", re.IGNORECASE | re.MULTILINE
)
_LENGTH = re.compile(rb"[0-9]{1,18}")


class MalformedHead(ValueError):
    """Its message is for the client."""


def body_length(fields: bytes) -> int | None:
    """The length of the body; None if the head does not say it, or the client waits for "100 Continue".

    ``fields``: the lines between the first of the head and the empty one, each with its CRLF. Raises MalformedHead.
    """
    if not _FIELDS.fullmatch(fields):
        raise MalformedHead("A line of the head is not a header.")
    found: dict[bytes, list[bytes]] = {}
    for name, value in _FRAMING.findall(fields):
        found.setdefault(name.lower(), []).append(value)
    lengths, codings = found.get(b"content-length", []), found.get(b"transfer-encoding", [])
    if len(lengths) + bool(codings) > 1:
        raise MalformedHead("The head says more than once how long the body is.")
    if codings:
        _check_codings(b",".join(codings))
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        raise MalformedHead("The header Content-Length is not a number of bytes.")
    if codings or b"expect" in found:
        return None
    return int(lengths[0]) if lengths else 0


def _check_codings(value: bytes) -> None:
    codings = [coding.strip().lower() for coding in value.split(b",")]
    if codings[-1] != b"chunked" or codings.count(b"chunked") > 1:
        raise MalformedHead("The header Transfer-Encoding does not end with chunked.")


__all__ = ["MalformedHead", "body_length"]
