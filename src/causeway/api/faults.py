"""How errors look: ``{"<fault name>": {"code": N, "message": "..."}}``. Source: Compute API guide, "Faults"."""

from __future__ import annotations

import logging
from typing import Any

from oslo_log import log

from causeway import errors
from causeway.api.request import Response

LOG = log.getLogger(__name__)

NAMES = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    429: "overLimit",
    501: "notImplemented",
    503: "serviceUnavailable",
}
NOT_FOUND = "The resource could not be found."


def body(status: int, message: str) -> dict[str, Any]:
    return {NAMES.get(status, "computeFault"): {"code": status, "message": message}}


def answer(status: int, message: str) -> Response:
    return Response(status, body(status, message))


def of_error(error: Exception, what: str) -> Response:
    """The answer to a request that failed. ``what``: the request, for the log; an unexpected error is logged in full."""
    if isinstance(error, errors.CausewayError):
        # A 501 is no failure: the caller asked for what this cloud does not have.
        if error.status >= 500 and error.status != 501:
            level = error.log_level
            LOG.log(level, "%s failed: %s %s", what, error.message, error.details, exc_info=level >= logging.ERROR)
        return answer(error.status, error.message)
    LOG.error("%s failed unexpectedly", what, exc_info=error)
    return answer(
        500,
        "Unexpected API Error. Please report this to the operator of this cloud, with the request id of this answer, "
        f"and attach the API log if possible.\n{type(error)}",
    )
