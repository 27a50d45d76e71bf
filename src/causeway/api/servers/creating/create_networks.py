"""The networks and security groups of new servers."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.request import ApiRequest
from causeway.api.servers.subresources.interfaces import EXTERNAL
from causeway.model.network import RequestedNetwork

ATTACH = "os_compute_api:servers:create:attach_network"


def plan(request: ApiRequest, server: dict[str, Any], count: int) -> list[RequestedNetwork]:
    """The networks and ports that each of ``count`` servers gets; may be empty. Raises BadRequest, Forbidden."""
    asked = server.get("networks")
    target = {"project_id": request.project_id, "user_id": request.user_id}
    if asked == "none":
        return []
    wanted: list[RequestedNetwork] = []
    if isinstance(asked, list) and asked:
        request.authorize(ATTACH, target)
        wanted = [_requested(entry) for entry in asked]
        ports = [network.port_id for network in wanted if network.port_id is not None]
        if len(set(ports)) != len(ports):
            raise errors.BadRequest("A port may be requested only once.")
    found: list[RequestedNetwork] = request.services.network.validate_networks(
        request.context, wanted, count, request.project_id, external=request.allows(EXTERNAL, target)
    )
    if request.version < (2, 72) and any(network.resource_request for network in found):
        raise errors.BadRequest(
            "Creating servers with ports having resource requests, like a port with a QoS minimum bandwidth policy, is not"
            " supported until microversion 2.72."
        )
    if asked == "auto" and not found:
        raise errors.BadRequest(
            f"Unable to automatically allocate a network for project {request.project_id}: it has no network to use."
        )
    return found


def _requested(entry: dict[str, Any]) -> RequestedNetwork:
    port_id, network_id = entry.get("port"), entry.get("uuid")
    fixed_ip = entry.get("fixed_ip")
    if port_id is not None:
        if fixed_ip is not None:
            raise errors.BadRequest(
                f"Specified Fixed IP '{fixed_ip}' cannot be used with port '{port_id}': the two cannot be specified together."
            )
        return RequestedNetwork(port_id=port_id, tag=entry.get("tag"))
    if not network_id:
        raise errors.BadRequest("Bad network format: missing 'uuid'")
    # Before 2.37 some clients sent "br-<uuid>".
    network_id = network_id.removeprefix("br-")
    return RequestedNetwork(network_id=network_id, fixed_ip=fixed_ip, tag=entry.get("tag"))


def security_groups(request: ApiRequest, server: dict[str, Any]) -> list[str]:
    """The names as they were given, or ``default`` if there are none. Raises an error for an unknown one."""
    names = list(dict.fromkeys(entry["name"] for entry in server.get("security_groups", []) if entry.get("name")))
    if not names or names == ["default"]:
        # Every project has it.
        return ["default"]
    request.services.network.security_group_ids(request.context, request.project_id, names)
    return names
