"""Bodies of requests."""

import logging
from typing import Any

import falcon
import msgspec

from causeway.devcloud.errors import bad_request
from causeway.http.strict import BrokenBody

LOG = logging.getLogger(__name__)

Json = dict[str, Any]

MAX_JSON_BYTES = 4 << 20
DRAIN_BYTES = 1 << 20


def read_json(request: falcon.Request) -> Any:
    stream = request.stream if request.content_length is None else request.bounded_stream
    try:
        raw = stream.read(MAX_JSON_BYTES) if _has_body(request) else b""
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, BrokenBody) as error:
        raise bad_request(f"The request body is not valid JSON: {error}", "HTTPBadRequest") from error


def _has_body(request: falcon.Request) -> bool:
    return bool(request.content_length) or "chunked" in request.env.get("HTTP_TRANSFER_ENCODING", "").lower()


def drain(environ: dict[str, Any]) -> None:
    """Reads the rest of a refused chunked body. Otherwise it would be read as the connection's next request."""
    if "chunked" not in environ.get("HTTP_TRANSFER_ENCODING", "").lower():
        return
    try:
        while environ["wsgi.input"].read(DRAIN_BYTES):
            pass
    except (OSError, ValueError) as error:
        LOG.info("the rest of a refused body could not be read: %s", error)
