"""Limits, quota sets, services, availability zones and extensions of Block Storage."""

from sqlalchemy import select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request
from causeway.devcloud.tables.base import now
from causeway.devcloud.tables.quota import Quota
from causeway.devcloud.tables.volume import Snapshot, Volume
from causeway.devcloud.volume import views
from causeway.devcloud.web import Call

SERVICE = "volume"
DEFAULTS = {
    "volumes": 1000,
    "snapshots": 1000,
    "gigabytes": 100000,
    "per_volume_gigabytes": -1,
    "backups": 10,
    "backup_gigabytes": 1000,
    "groups": 10,
}


def _limits(call: Call, project_id: str) -> dict[str, int]:
    query = select(Quota).where(Quota.service == SERVICE, Quota.project_id == project_id)
    return {**DEFAULTS, **{row.resource: row.limit for row in call.session.scalars(query)}}


def _used(call: Call, project_id: str) -> dict[str, int]:
    volumes = list(call.session.scalars(select(Volume.size).where(Volume.project_id == project_id)))
    snapshots = list(call.session.scalars(select(Snapshot.size).where(Snapshot.project_id == project_id)))
    return {"volumes": len(volumes), "snapshots": len(snapshots), "gigabytes": sum(volumes) + sum(snapshots)}


def show_limits(call: Call, **_: str) -> Json:
    limits, used = _limits(call, call.project_id), _used(call, call.project_id)
    return {
        "limits": {
            "rate": [],
            "absolute": {
                "maxTotalVolumes": limits["volumes"],
                "maxTotalSnapshots": limits["snapshots"],
                "maxTotalVolumeGigabytes": limits["gigabytes"],
                "maxTotalBackups": limits["backups"],
                "maxTotalBackupGigabytes": limits["backup_gigabytes"],
                "totalVolumesUsed": used["volumes"],
                "totalSnapshotsUsed": used["snapshots"],
                "totalGigabytesUsed": used["gigabytes"],
                "totalBackupsUsed": 0,
                "totalBackupGigabytesUsed": 0,
            },
        }
    }


def show_quota(call: Call, target: str, **_: str) -> Json:
    if target != call.caller.project_id:
        call.require_privileged()
    limits = _limits(call, target)
    if str(call.request.params.get("usage", "false")).lower() not in ("true", "1"):
        return {"quota_set": {"id": target, **limits}}
    used = _used(call, target)
    rows = {name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0} for name, limit in limits.items()}
    return {"quota_set": {"id": target, **rows}}


def show_default_quota(_call: Call, target: str, **_: str) -> Json:
    return {"quota_set": {"id": target, **DEFAULTS}}


def show_quota_class(call: Call, name: str, **_: str) -> Json:
    call.require_admin()
    return {"quota_class_set": {"id": name, **DEFAULTS}}


def update_quota(call: Call, target: str, **_: str) -> Json:
    call.require_admin()
    for name, limit in call.body("quota_set").items():
        if name in ("tenant_id", "project_id", "force", "skip_validation"):
            continue
        if name not in DEFAULTS or not isinstance(limit, int) or limit < -1:
            raise bad_request(f"Bad key or value in quota set: {name}")
        row = call.session.get(Quota, (SERVICE, target, name))
        if row is None:
            call.session.add(Quota(service=SERVICE, project_id=target, resource=name, limit=limit))
        else:
            row.limit = limit
    call.session.flush()
    return {"quota_set": _limits(call, target)}


def delete_quota(call: Call, target: str, **_: str) -> None:
    call.require_admin()
    for row in call.session.scalars(select(Quota).where(Quota.service == SERVICE, Quota.project_id == target)):
        call.session.delete(row)


def list_services(call: Call, **_: str) -> Json:
    call.require_admin()
    rows = (("cinder-scheduler", "devcloud"), ("cinder-volume", views.BACKEND))
    return {
        "services": [
            {
                "binary": binary,
                "host": host,
                "zone": "nova",
                "status": "enabled",
                "state": "up",
                "updated_at": now(),
                "disabled_reason": None,
            }
            for binary, host in rows
        ]
    }


def list_pools(call: Call, **_: str) -> Json:
    """The one pool. How much fits into it depends on the disk below, which is not asked."""
    call.require_admin()
    pool: Json = {"name": views.POOL}
    if str(call.request.params.get("detail", "false")).lower() in ("true", "1"):
        pool["capabilities"] = {
            "volume_backend_name": "files",
            "vendor_name": "Causeway",
            "driver_version": "1",
            "storage_protocol": "local",
            "total_capacity_gb": "unknown",
            "free_capacity_gb": "unknown",
            "reserved_percentage": 0,
            "timestamp": now(),
        }
    return {"pools": [pool]}


def list_zones(_call: Call, **_: str) -> Json:
    return {"availabilityZoneInfo": [{"zoneName": "nova", "zoneState": {"available": True}}]}


def list_extensions(_call: Call, **_: str) -> Json:
    return {"extensions": []}
