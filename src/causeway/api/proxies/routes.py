"""All routes that are passed on to other services."""

from __future__ import annotations

from causeway.api.dispatch import Route
from causeway.api.proxies import floating_ips, images, networks, security_groups, volumes
from causeway.api.request import Handler

LAST = 35
LAST_METADATA = 38
LAST_ACTION = 43
_METADATA = "/images/{image_id}/metadata"


def _until_35(method: str, path: str, handler: Handler) -> Route:
    return Route(method, path, handler, 1, LAST)


def _metadata(method: str, path: str, handler: Handler) -> Route:
    return Route(method, _METADATA + path, handler, 1, LAST_METADATA)


def _action(name: str, handler: Handler) -> Route:
    return Route("POST", "/servers/{server_id}/action", handler, 1, LAST_ACTION, action=name)


ROUTES: list[Route] = [
    _until_35("GET", "/os-networks", networks.index),
    _until_35("GET", "/os-networks/{network_id}", networks.show),
    _until_35("GET", "/os-tenant-networks", networks.index_of_tenant),
    _until_35("GET", "/os-tenant-networks/{network_id}", networks.show_of_tenant),
    _until_35("GET", "/os-floating-ip-pools", floating_ips.pools),
    _until_35("GET", "/os-floating-ips", floating_ips.index),
    _until_35("POST", "/os-floating-ips", floating_ips.create),
    _until_35("GET", "/os-floating-ips/{floating_ip_id}", floating_ips.show),
    _until_35("DELETE", "/os-floating-ips/{floating_ip_id}", floating_ips.delete),
    _action("addFloatingIp", floating_ips.add),
    _action("removeFloatingIp", floating_ips.remove),
    _until_35("GET", "/os-security-groups", security_groups.index),
    _until_35("POST", "/os-security-groups", security_groups.create),
    _until_35("GET", "/os-security-groups/{group_id}", security_groups.show),
    _until_35("PUT", "/os-security-groups/{group_id}", security_groups.update),
    _until_35("DELETE", "/os-security-groups/{group_id}", security_groups.delete),
    _until_35("POST", "/os-security-group-rules", security_groups.create_rule),
    _until_35("DELETE", "/os-security-group-rules/{rule_id}", security_groups.delete_rule),
    _until_35("GET", "/images", images.index),
    _until_35("GET", "/images/detail", images.detail),
    _until_35("GET", "/images/{image_id}", images.show),
    _until_35("DELETE", "/images/{image_id}", images.delete),
    _metadata("GET", "", images.metadata_index),
    _metadata("POST", "", images.metadata_update),
    _metadata("PUT", "", images.metadata_replace),
    _metadata("GET", "/{key}", images.metadata_show),
    _metadata("PUT", "/{key}", images.metadata_set),
    _metadata("DELETE", "/{key}", images.metadata_delete),
    _until_35("GET", "/os-volumes", volumes.index),
    _until_35("POST", "/os-volumes", volumes.create),
    _until_35("GET", "/os-volumes/detail", volumes.detail),
    _until_35("GET", "/os-volumes/{volume_id}", volumes.show),
    _until_35("DELETE", "/os-volumes/{volume_id}", volumes.delete),
    _until_35("GET", "/os-snapshots", volumes.snapshot_index),
    _until_35("POST", "/os-snapshots", volumes.snapshot_create),
    _until_35("GET", "/os-snapshots/detail", volumes.snapshot_detail),
    _until_35("GET", "/os-snapshots/{snapshot_id}", volumes.snapshot_show),
    _until_35("DELETE", "/os-snapshots/{snapshot_id}", volumes.snapshot_delete),
]
