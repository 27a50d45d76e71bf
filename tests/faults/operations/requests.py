"""How users, operators and other services ask for the operations of the matrix."""

from __future__ import annotations

import json
import uuid as uuids
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from keystoneauth1.exceptions import ConnectFailure

from causeway import errors
from causeway.conf import new_config
from causeway.context import admin_context
from causeway.operations.attachment_refresh import request_refresh
from causeway.requests.of_servers import Requests
from causeway.rpc.conductor import ConductorClient
from causeway.rpc.transport import Transports
from causeway.store.cell import instances
from tests.faults.answers import Answer, call
from tests.faults.clouds.site import Site, until
from tests.faults.moves import drained
from tests.faults.operations.subjects import Subject, act, create
from tests.faults.world import ASSISTED

T = TypeVar("T")


def create_on_volume(site: Site, subject: Subject) -> Answer:
    return create(site, subject, on_volume=True)


def delete(site: Site, subject: Subject) -> Answer:
    return call(site, "DELETE", f"/servers/{subject.uuid}")


def offload(site: Site, subject: Subject) -> Answer:
    """Nova lets administrators do that."""
    return call(site, "POST", f"/servers/{subject.uuid}/action", {"shelveOffload": None}, by=site.admin)


def attach_volume(site: Site, subject: Subject) -> Answer:
    body = {"volumeAttachment": {"volumeId": subject.volume_id}}
    return call(site, "POST", f"/servers/{subject.uuid}/os-volume_attachments", body)


def detach_volume(site: Site, subject: Subject) -> Answer:
    return call(site, "DELETE", f"/servers/{subject.uuid}/os-volume_attachments/{subject.volume_id}")


def undisturbed(work: Callable[[], T]) -> T:
    """What ``work`` returns. It is done again if a service that it asks is killed meanwhile: the accident is not its."""

    def attempt() -> list[T]:
        try:
            return [work()]
        except ConnectFailure:
            return []

    (found,) = until(attempt, bool)
    return found


def swap_volume(site: Site, subject: Subject) -> Answer:
    """As block storage asks for it, which has made a volume to move the server's to."""
    new = undisturbed(lambda: _made_for_swap(site, subject))
    path = f"/servers/{subject.uuid}/os-volume_attachments/{subject.volume_id}"
    return call(site, "PUT", path, {"volumeAttachment": {"volumeId": new}}, by=site.admin)


def _made_for_swap(site: Site, subject: Subject) -> str:
    storage = site.admin.block_storage
    for left in list(site.member.block_storage.volumes(name=f"{subject.name}-moved")):
        # Block storage deletes what it made for a request that failed.
        storage.post(f"/volumes/{left.id}/action", json={"os-reset_status": {"migration_status": "none"}})
        storage.delete_volume(left.id)
    new = site.member.block_storage.create_volume(size=1, name=f"{subject.name}-moved").id
    assert until(lambda: storage.get_volume(new).status, lambda status: status == "available") == "available"
    for volume_id, status in ((subject.volume_id, "migrating"), (new, f"target:{subject.volume_id}")):
        body = {"os-reset_status": {"migration_status": status}}
        assert storage.post(f"/volumes/{volume_id}/action", json=body).status_code == 202
    return str(new)


def awaited_snapshot(site: Site, subject: Subject, status: str) -> str:
    """One of which block storage waits to hear what became of it."""
    return undisturbed(lambda: _made_snapshot(site, subject, status))


def _made_snapshot(site: Site, subject: Subject, status: str) -> str:
    storage = site.member.block_storage
    body = {"snapshot": {"volume_id": subject.volume_id, "name": ASSISTED, "force": True}}
    found = str(storage.post("/snapshots", json=body).json()["snapshot"]["id"])
    seen = until(lambda: storage.get_snapshot(found).status, lambda status: status != "creating")
    assert seen == "available"
    path = f"/snapshots/{found}/action"
    assert site.admin.block_storage.post(path, json={"os-reset_status": {"status": status}}).status_code == 202
    return found


def snapshot_volume(site: Site, subject: Subject) -> Answer:
    query = {"volume_id": subject.volume_id, "all_tenants": "1"}
    (attachment,) = site.admin.block_storage.get("/attachments/detail", params=query).json()["attachments"]
    new = Path(attachment["connection_info"]["device_path"]).with_name(f"snapshot-{uuids.uuid4()}")
    new.touch()
    info = {"snapshot_id": awaited_snapshot(site, subject, "creating"), "type": "qcow2", "new_file": new.name}
    body = {"snapshot": {"volume_id": subject.volume_id, "create_info": info}}
    return call(site, "POST", "/os-assisted-volume-snapshots", body, by=site.admin)


def merge_files(site: Site, subject: Subject) -> Answer:
    info = quote(json.dumps({"volume_id": subject.volume_id}))
    path = f"/os-assisted-volume-snapshots/{awaited_snapshot(site, subject, 'deleting')}?delete_info={info}"
    return call(site, "DELETE", path, by=site.admin)


def refresh_attachment(site: Site, subject: Subject) -> Answer:
    """As the command does, which is in no process of the cloud and may find no conductor."""
    assert subject.uuid is not None and subject.volume_id is not None
    conf = new_config(transport_url="causeway-memory://nobody")
    requests = Requests(conf, site.api, site.cells, ConductorClient(Transports(conf).get(conf.transport_url)))
    cell, database = site.cells.of_server(subject.uuid)
    instance, context = instances.get(database, subject.uuid), admin_context()
    connector = {"host": instance.host, "ip": "192.0.2.1", "initiator": "iqn.2026-01.org.example:host"}
    try:
        request_refresh(requests, context, instance, cell.uuid, volume_id=subject.volume_id, connector=connector)
    except errors.CausewayError as refusal:
        return Answer(refusal.status, refusal.message, context.request_id)
    return Answer(202, request_id=context.request_id)


def plug(site: Site, subject: Subject) -> Answer:
    body = {"interfaceAttachment": {"net_id": site.network_id}}
    return call(site, "POST", f"/servers/{subject.uuid}/os-interface", body)


def plug_device(site: Site, subject: Subject) -> Answer:
    body = {"interfaceAttachment": {"port_id": subject.port_id}}
    return call(site, "POST", f"/servers/{subject.uuid}/os-interface", body)


def unplug(site: Site, subject: Subject) -> Answer:
    return call(site, "DELETE", f"/servers/{subject.uuid}/os-interface/{subject.port_id}")


def back_up(site: Site, subject: Subject, number: int = 2) -> Answer:
    return act(site, subject, "createBackup", {"name": f"backup{number}", "backup_type": "daily", "rotation": 1})


def evacuate(site: Site, subject: Subject) -> Answer:
    """By a version in which the server runs afterwards: from 2.95 on its user starts it."""
    body: dict[str, Any] = {"evacuate": {}}
    return call(site, "POST", f"/servers/{subject.uuid}/action", body, by=site.admin, microversion="2.94")


def unshelve_elsewhere(site: Site, subject: Subject) -> Answer:
    body = {"unshelve": {"host": "cell2-host1"}}
    return call(site, "POST", f"/servers/{subject.uuid}/action", body, by=site.admin)


def migrate_live(site: Site, subject: Subject) -> Answer:
    body = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
    return call(site, "POST", f"/servers/{subject.uuid}/action", body, by=site.admin)


def migrate_near_live(site: Site, subject: Subject) -> Answer:
    """To the other cell."""
    shown = json.loads(call(site, "GET", f"/servers/{subject.uuid}", by=site.admin).text)["server"]
    host = f"cell{2 if shown['OS-EXT-SRV-ATTR:host'].startswith('cell1') else 1}-host1"
    body = {"os-migrateLive": {"host": host, "block_migration": "auto"}}
    return call(site, "POST", f"/servers/{subject.uuid}/action", body, by=site.admin)


def migrate_across_cells(site: Site, subject: Subject) -> Answer:
    """To a host of the other cell that reaches the server's."""
    body = {"os-migrateLive": {"host": "cell2-host2", "block_migration": "auto"}}
    return call(site, "POST", f"/servers/{subject.uuid}/action", body, by=site.admin)


def drain_records(site: Site, subject: Subject) -> Answer:
    assert subject.uuid is not None
    return drained.begin_records(site, subject.uuid)
