"""``/limits``. Source: Compute API reference, "Limits"."""

from __future__ import annotations

from causeway.api.answers import projects as answers
from causeway.api.quotas import quota
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import quotas as schemas

# name in the answer -> resource
_MAXIMA = {
    "maxTotalInstances": "instances",
    "maxTotalCores": "cores",
    "maxTotalRAMSize": "ram",
    "maxTotalKeypairs": "key_pairs",
    "maxServerMeta": "metadata_items",
    "maxServerGroups": "server_groups",
    "maxServerGroupMembers": "server_group_members",
}
_NETWORK_MAXIMA = {
    "maxTotalFloatingIps": "floating_ips",
    "maxSecurityGroups": "security_groups",
    "maxSecurityGroupRules": "security_group_rules",
}
_USED = {
    "totalInstancesUsed": "instances",
    "totalCoresUsed": "cores",
    "totalRAMUsed": "ram",
    "totalServerGroupsUsed": "server_groups",
}


@handler(query=schemas.LIMITS_QUERY, answer=answers.LIMITS)
def show(request: ApiRequest) -> Response:
    request.authorize("os_compute_api:limits")
    project_id = request.project_id
    other = request.param("tenant_id")
    if other is not None and other != project_id:
        request.authorize("os_compute_api:limits:other_project", {"project_id": other, "user_id": request.user_id})
        project_id = other
    limits = quota.limits(request.services, project_id)
    used = quota.in_use(request.services, project_id)
    absolute = {name: limits[resource] for name, resource in _MAXIMA.items()}
    absolute |= {name: used[resource] for name, resource in _USED.items()}
    if request.version < (2, 57):
        absolute["maxPersonality"] = limits["injected_files"]
        absolute["maxPersonalitySize"] = limits["injected_file_content_bytes"]
    if request.version < (2, 39):
        absolute["maxImageMeta"] = limits["metadata_items"]
    if request.version < (2, 36):
        absolute |= {name: limits[resource] for name, resource in _NETWORK_MAXIMA.items()}
        absolute |= dict.fromkeys(("totalFloatingIpsUsed", "totalSecurityGroupsUsed"), 0)
    return Response(200, {"limits": {"rate": [], "absolute": absolute}})
