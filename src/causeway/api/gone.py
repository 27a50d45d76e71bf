"""What was removed from the Compute API: 410, in every version, as in Nova."""

from __future__ import annotations

from causeway import errors
from causeway.api.answers.parts import NEVER
from causeway.api.dispatch import Route
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import common


class Gone(errors.CausewayError):
    status, code = 410, "gone"


@handler(query=common.IGNORED_QUERY, statuses=(410,), answer=NEVER)
def gone(_request: ApiRequest, **_parameters: str) -> Response:
    """Removed from the Compute API."""
    raise Gone("This resource is no longer available. No forwarding address is given.")


# path -> the methods that it had
_REMOVED = {
    "/os-agents": "GET POST",
    "/os-agents/{agent_id}": "PUT DELETE",
    "/os-cells": "GET POST",
    "/os-cells/capacities": "GET",
    "/os-cells/detail": "GET",
    "/os-cells/info": "GET",
    "/os-cells/sync_instances": "POST",
    "/os-cells/{cell_id}": "GET PUT DELETE",
    "/os-cells/{cell_id}/capacities": "GET",
    "/os-certificates": "POST",
    "/os-certificates/{certificate_id}": "GET",
    "/os-cloudpipe": "GET POST",
    "/os-cloudpipe/{cloudpipe_id}": "PUT",
    "/os-fixed-ips/{fixed_ip}": "GET",
    "/os-floating-ip-dns": "GET",
    "/os-floating-ip-dns/{domain}": "PUT DELETE",
    "/os-floating-ip-dns/{domain}/entries/{name}": "GET PUT DELETE",
    "/os-floating-ips-bulk": "GET POST",
    "/os-floating-ips-bulk/{host}": "GET PUT",
    "/os-fping": "GET",
    "/os-fping/{server_id}": "GET",
    # Networks are read through the proxy until 2.35; changing them is gone.
    "/os-networks": "POST",
    "/os-networks/add": "POST",
    "/os-networks/{network_id}": "DELETE",
    "/os-security-group-default-rules": "GET POST",
    "/os-security-group-default-rules/{rule_id}": "GET DELETE",
    "/os-tenant-networks": "POST",
    "/os-tenant-networks/{network_id}": "DELETE",
    "/servers/{server_id}/consoles": "GET POST",
    "/servers/{server_id}/consoles/{console_id}": "GET DELETE",
    "/servers/{server_id}/os-virtual-interfaces": "GET",
}
# path -> the actions that it had, with the last version that knew them
_REMOVED_ACTIONS: dict[str, dict[str, int | None]] = {
    "/os-fixed-ips/{fixed_ip}/action": {"reserve": None, "unreserve": None},
    "/os-networks/{network_id}/action": {
        "disassociate": None,
        "associate_host": None,
        "disassociate_host": None,
        "disassociate_project": None,
    },
    "/servers/{server_id}/action": {"resetNetwork": None, "os-getRDPConsole": 5},
}

ROUTES: list[Route] = [
    *(Route(method, path, gone) for path, methods in _REMOVED.items() for method in methods.split()),
    *(
        Route("POST", path, gone, 1, last, action=name)
        for path, names in _REMOVED_ACTIONS.items()
        for name, last in names.items()
    ),
]
