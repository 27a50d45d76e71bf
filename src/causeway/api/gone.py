"""What the Compute API once had and has no more, at any version."""

from __future__ import annotations

from causeway import errors
from causeway.api.request import ApiRequest, Response, handler


class Gone(errors.CausewayError):
    status, code = 410, "gone"


@handler(statuses=(410,))
def gone(_request: ApiRequest, **_parameters: str) -> Response:
    raise Gone("This resource is no longer available. No forwarding address is given.")
