"""The Block Storage API on one screen. Every path exists with and without the project."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from causeway.devcloud.cloud import Cloud
from causeway.devcloud.volume import (
    absent,
    actions,
    admin,
    attachments,
    encryption,
    snapshots,
    transfers,
    types,
    versions,
    volumes,
)
from causeway.devcloud.web import Route, Service

VOLUME, ATTACHMENT, SNAPSHOT = "/volumes/{volume_id}", "/attachments/{attachment_id}", "/snapshots/{snapshot_id}"
# The first is the path since 3.55.
TRANSFERS = ("/volume-transfers", "/os-volume-transfer")

BELOW_PROJECT = [
    Route("GET", "/volumes", volumes.list_summary),
    Route("POST", "/volumes", volumes.create, 202),
    Route("GET", "/volumes/detail", volumes.list_detail),
    Route("GET", "/volumes/summary", volumes.show_summary),
    Route("GET", VOLUME, volumes.show),
    Route("PUT", VOLUME, volumes.update),
    Route("DELETE", VOLUME, volumes.delete, 202),
    Route("POST", VOLUME + "/action", actions.act, 202),
    Route("GET", VOLUME + "/encryption", encryption.show_of_volume),
    Route("GET", VOLUME + "/metadata", volumes.show_metadata),
    Route("POST", VOLUME + "/metadata", volumes.merge_metadata),
    Route("PUT", VOLUME + "/metadata", volumes.replace_metadata),
    Route("DELETE", VOLUME + "/metadata/{key}", volumes.delete_metadata),
    Route("GET", "/attachments", attachments.list_summary),
    Route("POST", "/attachments", attachments.create),
    Route("GET", "/attachments/detail", attachments.list_detail),
    Route("GET", ATTACHMENT, attachments.show),
    Route("PUT", ATTACHMENT, attachments.update),
    Route("DELETE", ATTACHMENT, attachments.delete),
    Route("POST", ATTACHMENT + "/action", attachments.act, 204),
    Route("GET", "/snapshots", snapshots.list_snapshots),
    Route("POST", "/snapshots", snapshots.create, 202),
    Route("GET", "/snapshots/detail", snapshots.list_snapshots),
    Route("GET", SNAPSHOT, snapshots.show),
    Route("PUT", SNAPSHOT, snapshots.update),
    Route("DELETE", SNAPSHOT, snapshots.delete, 202),
    Route("POST", SNAPSHOT + "/action", snapshots.act, 202),
    Route("GET", "/types", types.list_types),
    Route("POST", "/types", types.create),
    Route("GET", "/types/{type_id}", types.show),
    Route("DELETE", "/types/{type_id}", types.delete, 202),
    Route("GET", "/types/{type_id}/extra_specs", types.show_extra_specs),
    Route("POST", "/types/{type_id}/extra_specs", types.set_extra_specs),
    Route("GET", "/types/{type_id}/encryption", encryption.show_of_type),
    Route("POST", "/types/{type_id}/encryption", encryption.create),
    Route("DELETE", "/types/{type_id}/encryption/{encryption_id}", encryption.delete, 202),
    *(
        route
        for path in TRANSFERS
        for route in (
            Route("GET", path, transfers.list_summary),
            Route("POST", path, transfers.create, 202),
            Route("GET", path + "/detail", transfers.list_detail),
            Route("GET", path + "/{transfer_id}", transfers.show),
            Route("DELETE", path + "/{transfer_id}", transfers.delete, 202),
            Route("POST", path + "/{transfer_id}/accept", transfers.accept, 202),
        )
    ),
    *absent.routes(),
    Route("GET", "/limits", admin.show_limits),
    Route("GET", "/os-quota-sets/{target}", admin.show_quota),
    Route("PUT", "/os-quota-sets/{target}", admin.update_quota),
    Route("DELETE", "/os-quota-sets/{target}", admin.delete_quota),
    Route("GET", "/os-quota-sets/{target}/defaults", admin.show_default_quota),
    Route("GET", "/os-quota-class-sets/{name}", admin.show_quota_class),
    Route("GET", "/os-services", admin.list_services),
    Route("GET", "/scheduler-stats/get_pools", admin.list_pools),
    Route("GET", "/os-availability-zone", admin.list_zones),
    Route("GET", "/extensions", admin.list_extensions),
]


def _all_routes() -> Iterator[Route]:
    yield Route("GET", "/", versions.list_versions, public=True)
    yield Route("GET", "/v3", versions.list_versions, public=True)
    for route in BELOW_PROJECT:
        yield replace(route, path="/v3" + route.path)
        yield replace(route, path="/v3/{project_id}" + route.path)


ROUTES = list(_all_routes())
ERROR_KEYS = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    406: "computeFault",
    409: "conflictingRequest",
    413: "overLimit",
}


def error_body(status: int, message: str, _kind: str) -> tuple[str, bytes]:
    body = {ERROR_KEYS.get(status, "computeFault"): {"code": status, "message": message}}
    return "application/json", msgspec.json.encode(body)


def make_service(cloud: Cloud) -> Service:
    return Service(cloud, "volume", ROUTES, error_body, versions.negotiate)
