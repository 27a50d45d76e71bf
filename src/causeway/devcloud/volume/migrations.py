"""Migrations of volumes, which Compute is asked to swap, and reports when it has done so.

There is only one place for volumes here. A test that wants a migration makes the new volume and sets both migration statuses, as
administrators may: ``migrating`` for the old one, ``target:ID`` for the new one.
"""

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request
from causeway.devcloud.tables.volume import Volume, VolumeMigration
from causeway.devcloud.volume import attachments, files, volumes
from causeway.devcloud.web import Call


def status_of(call: Call, volume_id: str) -> str | None:
    found = call.session.get(VolumeMigration, volume_id)
    return None if found is None else found.status


def set_status(call: Call, volume_id: str, status: str) -> None:
    found = call.session.get(VolumeMigration, volume_id)
    if status == "none":
        if found is not None:
            call.session.delete(found)
    elif found is None:
        call.session.add(VolumeMigration(volume_id=volume_id, status=status))
    else:
        found.status = status


def complete(call: Call, row: Volume, given: Json) -> Json:
    """Ends a migration.

    The volume keeps its id, and gets the new one's data, size, type and attachments, unless ``error`` is set.
    """
    call.require_admin()
    new = volumes.find(call, given.get("new_volume"))
    if status_of(call, new.id) != f"target:{row.id}":
        raise bad_request(f"Invalid volume: Volume {new.id} is no migration target of volume {row.id}.")
    set_status(call, new.id, "none")
    call.response.status = "200 OK"
    if given.get("error"):
        set_status(call, row.id, "error")
        volumes.remove(call, new)
        return {"save_volume_id": row.id}
    files.take_over(files.volume_path(call.cloud, new.id), files.volume_path(call.cloud, row.id))
    for attachment in list(new.attachments):
        attachment.volume = row
    row.size, row.volume_type = new.size, new.volume_type
    call.session.flush()
    call.session.refresh(new)
    call.session.delete(new)
    attachments.settle(row)
    set_status(call, row.id, "success")
    return {"save_volume_id": row.id}
