"""``/os-causeway/adoption``: how far the cloud is taken over from Nova. Ours; the Compute API has no such resource."""

from __future__ import annotations

from typing import Any

import msgspec

from causeway.api.answers import ours
from causeway.api.request import ApiRequest, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.hosts import adoption
from causeway.store.api import adoptions

RULE = "causeway:adoption"
SHOW: VersionedSchemas = [
    (1, None, common.query({"brief": common.once({"type": "string", "enum": ["0", "1"]})}, strict=True))
]


@handler(query=SHOW, answer=ours.ADOPTION)
def show(request: ApiRequest) -> Response:
    """What was imported, and how far each host is (`causeway.hosts.adoption`). With ``brief=1`` no cell is asked and shown."""
    request.authorize(RULE)
    api, cells = request.services.api, request.services.cells
    found: dict[str, Any] = {"is_finished": adoptions.is_finished(api), "imported": adoptions.counts(api)}
    if request.param("brief") != "1":
        cells.refresh()
        found["cells"] = msgspec.to_builtins(adoption.read(cells))
    return Response(200, {"adoption": found})
