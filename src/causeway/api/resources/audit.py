"""``/os-causeway/audit``: what `causeway audit` asks for. Ours; the Compute API has no such resource."""

from __future__ import annotations

import msgspec

from causeway import errors
from causeway.api.answers import ours
from causeway.api.request import ApiRequest, Response, VersionedSchemas, handler
from causeway.api.schemas import common

RULE = "causeway:audit"
PLACE: VersionedSchemas = [(1, None, common.query({"cell": {}, "host": {}}))]


def _audit(request: ApiRequest, *, fix: bool) -> Response:
    request.authorize(RULE)
    report = request.services.conductor.audit(request.context, fix=fix)
    return Response(200, {"audit": msgspec.to_builtins(report) | {"is_clean": report.is_clean}})


@handler(answer=ours.AUDIT)
def show(request: ApiRequest) -> Response:
    """Compares all records and services, and shows where they disagree (`causeway.model.audit.Report`)."""
    return _audit(request, fix=False)


@handler(answer=ours.AUDIT)
def fix(request: ApiRequest) -> Response:
    """Fixes what can be fixed safely, and shows what it fixed and where records and services still disagree."""
    return _audit(request, fix=True)


@handler(query=PLACE, answer=ours.AUDIT)
def map_server(request: ApiRequest, server_id: str) -> Response:
    """Maps a server that can't be reached to where its only guest and disks are. Shows what was fixed and what is left."""
    request.authorize(RULE)
    cell, host = request.param("cell"), request.param("host")
    if not cell or not host:
        raise errors.BadRequest("The cell and the host must be named: ?cell=CELL&host=HOST.")
    report = request.services.conductor.map_server(request.context, instance_uuid=server_id, cell=cell, host=host)
    return Response(200, {"audit": msgspec.to_builtins(report) | {"is_clean": report.is_clean}})
