"""``/os-causeway/cleanups``: what hosts are to clean up when they return. Ours; the Compute API has no such resource."""

from __future__ import annotations

from causeway.api.answers import ours
from causeway.api.request import ApiRequest, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.store.api import cleanups

RULE = "causeway:cleanups:index"
LIST: VersionedSchemas = [(1, None, common.query({"host": common.once(common.HOSTNAME)}, strict=True))]


@handler(query=LIST, answer=ours.CLEANUPS)
def index(request: ApiRequest) -> Response:
    """What is left on hosts that were forced down, oldest first."""
    request.authorize(RULE)
    found = cleanups.listed(request.services.api, request.param("host"))
    return Response(
        200,
        {
            "cleanups": [
                {
                    "id": each.id,
                    "host": each.host,
                    "server": each.instance_uuid,
                    "missed": each.what,
                    "since": each.created_at.isoformat(),
                }
                for each in found
            ]
        },
    )
