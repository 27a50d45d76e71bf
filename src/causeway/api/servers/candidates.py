"""``GET /os-causeway/servers/{server_id}/move-candidates?flavor=...``: where the server could be moved to, and why not elsewhere.

Ours; the Compute API has no such resource. It changes nothing. The answer is a `causeway.model.candidates.MoveCandidates`.
"""

from __future__ import annotations

import msgspec

from causeway import errors
from causeway.api.answers import ours
from causeway.api.request import ApiRequest, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.api.servers import flavors_and_images, loading
from causeway.api.servers.actions import resize
from causeway.model import server_actions
from causeway.moves.steps.local_disks import refuse_smaller_disks
from causeway.store.cell import block_devices

RULE = "causeway:move_candidates"
QUERY: VersionedSchemas = [(1, None, common.query({"flavor": common.once(common.ANY_STRING)}, strict=True))]


@handler(query=QUERY, answer=ours.CANDIDATES)
def index(request: ApiRequest, server_id: str) -> Response:
    """Each host of each cell with its refusal or its weights, and the result of a dry run. No flavor: a cold migration."""
    home = loading.load_in_cell(request, server_id, RULE, "move-candidates", tags=False)
    loading.check_host(home.instance)
    wanted = request.param("flavor")
    flavor = None if wanted is None else flavors_and_images.flavor_for(request, wanted)
    found = request.services.conductor.move_candidates(
        request.context,
        instance_uuid=server_id,
        flavor=flavor,
        cross_cell_allowed=resize.may_leave_its_cell(request, home),
    )
    try:
        resize.check_movable(request, home, server_actions.MIGRATE if flavor is None else server_actions.RESIZE)
        if flavor is not None:
            resize.check_flavor(request, home, flavor)
            # The move itself checks this later.
            refuse_smaller_disks(
                home.instance.flavor, flavor, block_devices.of_instance(home.database, home.instance.uuid)
            )
    except errors.CausewayError as refusal:
        found.refusal = refusal.message
    return Response(200, {"move_candidates": msgspec.to_builtins(found)})
