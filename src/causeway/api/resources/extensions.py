"""``/extensions``: what old clients ask for to find out what an API has. Source: Compute API reference, "Extensions"."""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.answers import proxies as answers
from causeway.api.request import ApiRequest, Response, handler

_UPDATED = "2014-12-03T00:00:00Z"
_NAMES = {
    "flavors": "Flavors",
    "os-flavor-access": "FlavorAccess",
    "os-flavor-extra-specs": "FlavorExtraSpecs",
    "os-flavor-manage": "FlavorManage",
    "os-aggregates": "Aggregates",
    "os-attach-interfaces": "AttachInterfaces",
    "os-availability-zone": "AvailabilityZone",
    "os-consoles": "Consoles",
    "os-floating-ip-pools": "FloatingIpPools",
    "os-floating-ips": "FloatingIps",
    "os-hosts": "Hosts",
    "os-instance-usage-audit-log": "OSInstanceUsageAuditLog",
    "os-networks": "Networks",
    "os-security-groups": "SecurityGroups",
    "os-tenant-networks": "OSTenantNetworks",
    "image-metadata": "ImageMetadata",
    "images": "Images",
    "os-extended-server-attributes": "ExtendedServerAttributes",
    "os-extended-status": "ExtendedStatus",
    "os-hypervisors": "Hypervisors",
    "os-instance-actions": "InstanceActions",
    "os-keypairs": "Keypairs",
    "os-lock-server": "LockServer",
    "os-migrate-server": "MigrateServer",
    "os-migrations": "Migrations",
    "os-quota-class-sets": "QuotaClasses",
    "os-quota-sets": "Quotas",
    "os-server-external-events": "ServerExternalEvents",
    "os-server-groups": "ServerGroups",
    "os-services": "Services",
    "os-simple-tenant-usage": "SimpleTenantUsage",
    "os-used-limits": "UsedLimits",
    "os-volumes": "Volumes",
    "server-metadata": "ServerMetadata",
    "servers": "Servers",
}


def _view(alias: str) -> dict[str, Any]:
    return {
        "alias": alias,
        "name": _NAMES[alias],
        "description": f"{_NAMES[alias]}.",
        "namespace": "http://docs.openstack.org/compute/ext/fake_xml",
        "updated": _UPDATED,
        "links": [],
    }


@handler(answer=answers.EXTENSIONS)
def index(request: ApiRequest) -> Response:
    request.authorize("os_compute_api:extensions")
    return Response(200, {"extensions": [_view(alias) for alias in sorted(_NAMES)]})


@handler(answer=answers.EXTENSION)
def show(request: ApiRequest, alias: str) -> Response:
    request.authorize("os_compute_api:extensions")
    if alias not in _NAMES:
        raise errors.NotFound(f"There is no extension {alias}.")
    return Response(200, {"extension": _view(alias)})
