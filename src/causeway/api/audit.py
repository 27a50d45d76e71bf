"""``/os-causeway/audit``: what `causeway audit` asks for. Ours; the Compute API has no such resource."""

from __future__ import annotations

import msgspec

from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas.flavor_access import NO_QUERY

RULE = "causeway:audit"


def _audit(request: ApiRequest, *, fix: bool) -> Response:
    request.authorize(RULE)
    report = request.services.conductor.audit(request.context, fix=fix)
    return Response(200, {"audit": msgspec.to_builtins(report) | {"is_clean": report.is_clean}})


@handler(query=NO_QUERY)
def show(request: ApiRequest) -> Response:
    """Holds all records and services against each other: every disagreement (`causeway.model.audit.Report`)."""
    return _audit(request, fix=False)


@handler(query=NO_QUERY)
def mend(request: ApiRequest) -> Response:
    """The same, and mends what is safe first."""
    return _audit(request, fix=True)
