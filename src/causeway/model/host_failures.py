"""Which failures may be a host's own: another host may succeed, and the host is preferred less."""

from __future__ import annotations

from causeway import errors

# What stays as it is on any other host: the request, the server and its things, or the operation itself are to blame.
_OF_NO_HOST = (
    errors.BadRequest,
    errors.Cancelled,
    errors.Conflict,
    errors.DatabaseFailed,
    errors.Forbidden,
    errors.ImageRefused,
    errors.Interrupted,
    errors.NotFound,
    errors.QueryFailed,
    errors.RequestRefused,
    errors.Unauthorized,
)


def may_be_of_host(failure: Exception) -> bool:
    """Whether what failed on a host may succeed on another one. Errors that nobody foresaw may."""
    return not isinstance(failure, _OF_NO_HOST)
