"""Nova's versioned objects, as its databases keep them: JSON with an envelope around each object's data."""

from __future__ import annotations

from typing import Any

import msgspec

from causeway.errors import CausewayError

_NAME, _VERSION, _DATA = "nova_object.name", "nova_object.version", "nova_object.data"
# A higher one is another format. All objects that columns of these releases have are of this one.
_MAJOR = "1"


class UnknownRecord(CausewayError):
    """A record of Nova's has a form that is not known, so that it can't be imported. The message names it."""

    code = "unknown_record"
    passing, few_tries = False, False


def load(text: str | None, what: str) -> Any:
    """The value of a column with JSON, without envelopes. ``what``: for the error. Raises UnknownRecord."""
    if not text:
        return None
    try:
        return plain(msgspec.json.decode(text), what)
    except (msgspec.DecodeError, RecursionError) as failure:
        raise UnknownRecord(f"{what} is not JSON: it can't be imported.") from failure


def plain(value: Any, what: str) -> Any:
    """The data of an object and of all objects in it. Raises UnknownRecord if one has a form that is not known."""
    if isinstance(value, dict):
        if _DATA not in value:
            return {name: plain(each, what) for name, each in value.items()}
        version = str(value.get(_VERSION, ""))
        if version.partition(".")[0] != _MAJOR:
            raise UnknownRecord(
                f"{what} has a {value.get(_NAME)} of version {version or 'none'}; known is {_MAJOR}.x. "
                "This release of Nova is newer than what Causeway was tried with."
            )
        return plain(value[_DATA], what)
    if isinstance(value, list):
        return [plain(each, what) for each in value]
    return value


__all__ = ["UnknownRecord", "load", "plain"]
