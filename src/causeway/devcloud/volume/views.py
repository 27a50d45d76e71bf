"""Block Storage's rows as its API shows them, and paging."""

from typing import Any

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request
from causeway.devcloud.tables.volume import Attachment, Snapshot, SnapshotProgress, Volume, VolumeMigration, VolumeType
from causeway.devcloud.volume import files, keys_of_volumes
from causeway.devcloud.web import Call, links_root

# Where volumes are, as administrators see it.
BACKEND = "devcloud@files"
POOL = f"{BACKEND}#files"


def links(call: Call, family: str, row_id: str) -> list[Json]:
    root = links_root(call.request)
    project = call.caller.project_id
    return [
        {"rel": "self", "href": f"{root}/v3/{project}/{family}/{row_id}"},
        {"rel": "bookmark", "href": f"{root}/{project}/{family}/{row_id}"},
    ]


def page(call: Call, rows: list[Any]) -> list[Any]:
    params: dict[str, Any] = dict(call.request.params)
    if "marker" in params:
        ids = [row.id for row in rows]
        if params["marker"] not in ids:
            raise bad_request(f"marker not found: {params['marker']}")
        rows = rows[ids.index(params["marker"]) + 1 :]
    for name in ("offset", "limit"):
        if name in params and not str(params[name]).isdigit():
            raise bad_request(f"{name} must be a number of 0 or more.")
    rows = rows[int(params.get("offset", 0)) :]
    return rows[: int(params["limit"])] if "limit" in params else rows


def volume_summary(call: Call, row: Volume) -> Json:
    return {"id": row.id, "name": row.name or "", "links": links(call, "volumes", row.id)}


def volume(call: Call, row: Volume) -> Json:
    body: Json = {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "status": row.status,
        "size": row.size,
        "availability_zone": row.availability_zone,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "volume_type": row.volume_type.name,
        "bootable": "true" if row.bootable else "false",
        "encrypted": keys_of_volumes.is_encrypted(call, row.id),
        "multiattach": row.multiattach,
        "snapshot_id": row.snapshot_id,
        "source_volid": row.source_volid,
        "consistencygroup_id": None,
        "user_id": row.user_id,
        "replication_status": None,
        "metadata": row.properties,
        "attachments": [_volume_attachment(each) for each in row.attachments if each.status == "attached"],
        "links": links(call, "volumes", row.id),
        "os-vol-tenant-attr:tenant_id": row.project_id,
    }
    if row.image_metadata:
        body["volume_image_metadata"] = row.image_metadata
    if call.caller.is_admin:
        migration = call.session.get(VolumeMigration, row.id)
        migration_status = None if migration is None else migration.status
        body["os-vol-host-attr:host"] = POOL
        body["os-vol-mig-status-attr:migstat"] = migration_status
        body["os-vol-mig-status-attr:name_id"] = None
        body["migration_status"] = migration_status
    if call.microversion >= (3, 13):
        body["group_id"] = None
    if call.microversion >= (3, 21):
        body["provider_id"] = None
    if call.microversion >= (3, 48):
        body["service_uuid"] = None
        body["shared_targets"] = False
    if call.microversion >= (3, 61) and call.caller.is_admin:
        body["cluster_name"] = None
    if call.microversion >= (3, 63):
        body["volume_type_id"] = row.volume_type_id
    if call.microversion >= (3, 65):
        body["consumes_quota"] = True
    return body


def _volume_attachment(row: Attachment) -> Json:
    return {
        "id": row.volume_id,
        "volume_id": row.volume_id,
        "attachment_id": row.id,
        "server_id": row.instance_id,
        "host_name": row.connector.get("host"),
        "device": row.connector.get("mountpoint"),
        "attached_at": row.attached_at,
    }


def attachment_summary(row: Attachment) -> Json:
    return {"id": row.id, "status": row.status, "instance": row.instance_id, "volume_id": row.volume_id}


def attachment(call: Call, row: Attachment) -> Json:
    return {
        **attachment_summary(row),
        "attached_at": row.attached_at or "",
        "detached_at": "",
        "attach_mode": row.mode,
        "connection_info": connection_info(call, row) if row.connector else {},
    }


def connection_info(call: Call, row: Attachment) -> Json:
    """The connection info of the volume's file.

    Block Storage shows the connection's data flat beside `driver_volume_type`; os-brick and Compute have it below `data`. The
    result has both.
    """
    data: Json = {
        "device_path": str(files.volume_path(call.cloud, row.volume_id)),
        "name": f"volume-{row.volume_id}",
        "format": "raw",
        "volume_id": row.volume_id,
        "attachment_id": row.id,
        "access_mode": "ro" if row.mode == "ro" else "rw",
        "encrypted": keys_of_volumes.is_encrypted(call, row.volume_id),
        "qos_specs": None,
    }
    return {"driver_volume_type": "local", **data, "data": data}


def snapshot(call: Call, row: Snapshot) -> Json:
    progress = call.session.get(SnapshotProgress, row.id)
    percent = progress.progress if progress is not None else "0%"
    body: Json = {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "volume_id": row.volume_id,
        "status": row.status,
        "size": row.size,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "metadata": row.properties,
        "os-extended-snapshot-attributes:progress": "100%" if row.status == "available" else percent,
        "os-extended-snapshot-attributes:project_id": row.project_id,
    }
    if call.microversion >= (3, 14):
        body["group_snapshot_id"] = None
    if call.microversion >= (3, 41):
        body["user_id"] = row.user_id
    if call.microversion >= (3, 65):
        body["consumes_quota"] = True
    return body


def volume_type(call: Call, row: VolumeType) -> Json:
    body: Json = {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "is_public": row.is_public,
        "os-volume-type-access:is_public": row.is_public,
        "qos_specs_id": None,
    }
    if call.caller.is_admin:
        body["extra_specs"] = row.extra_specs
    else:
        body["extra_specs"] = {name: row.extra_specs[name] for name in ("multiattach",) if name in row.extra_specs}
    return body
