"""What users do to a server that takes long, apart from moves: each with what it needs, and how one sees that it took effect."""

from __future__ import annotations

import json
import uuid as uuids
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from causeway import errors
from causeway.conf import new_config
from causeway.context import admin_context
from causeway.operations.attachment_refresh import request_refresh
from causeway.parts.requests import Requests
from causeway.rpc.conductor import ConductorClient
from causeway.rpc.transport import Transports
from causeway.store.cell import instances

from . import drained
from .answers import Answer, call
from .site import Site, until
from .users import mark
from .world import ASSISTED, Holding

# Makes servers in one cell, which has two hosts.
FLAVOR = "gen1.small"
DYING = "cell1-host1"
# Everything must be there again, or gone, within so many seconds when nothing goes wrong.
PATIENCE = 30.0


@dataclass
class Subject:
    """A server that an operation is asked for, with what its user made for it."""

    name: str = field(default_factory=lambda: f"server-{uuids.uuid4().hex[:12]}")
    uuid: str | None = None
    volume_id: str | None = None
    port_id: str | None = None
    # What there was before the operation was asked for.
    before: Holding | None = None
    answer: Answer | None = None


@dataclass(frozen=True)
class Operation:
    """``took_effect``: whether a server is what its user wanted, given what it was before.

    ``may_end_in_error``: the field leaves a server in ERROR, with a fault, whose operation failed. ``loses_disk``: what was on
    the root disk is gone afterwards. ``keeps_images``: what the images are called that the user has of the server, before or
    afterwards. ``offloads``: in a cloud that takes shelved servers off their hosts at once. ``recipes``: of the journal that it
    runs; those that run none can't be taken over. ``kills_host``: the host that is dead when it is asked for.
    ``only``: what its points begin with, if others are of who asks for it. ``while_off``: it works on a volume of a server that
    is off, whose host connects what is reserved for it when it is started. ``may_leave_cell``: also if it fails afterwards.
    """

    name: str
    prepare: Callable[[Site, Subject], None]
    ask: Callable[[Site, Subject], Answer]
    took_effect: Callable[[Holding, Holding], bool]
    may_end_in_error: bool = False
    loses_disk: bool = False
    keeps_images: tuple[str, ...] = ()
    offloads: bool = True
    recipes: tuple[str, ...] = ()
    kills_host: str | None = None
    only: tuple[str, ...] = ()
    while_off: bool = False
    may_leave_cell: bool = False

    @property
    def group(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


# asking


def act(site: Site, subject: Subject, action: str, body: Any = None) -> Answer:
    return call(site, "POST", f"/servers/{subject.uuid}/action", {action: body})


def create(
    site: Site, subject: Subject, *, on_volume: bool = False, host: str | None = None, flavor: str = FLAVOR
) -> Answer:
    """``host``: wanted by an administrator."""
    server: dict[str, Any] = {
        "name": subject.name,
        "flavorRef": flavor,
        "networks": [{"port": subject.port_id} if subject.port_id else {"uuid": site.network_id}],
    }
    if on_volume:
        server["block_device_mapping_v2"] = [
            {
                "boot_index": 0,
                "source_type": "image",
                "destination_type": "volume",
                "uuid": site.image_id,
                "volume_size": 1,
                "delete_on_termination": True,
            }
        ]
    else:
        server["imageRef"] = site.image_id
    if host is not None:
        server["availability_zone"] = f"nova:{host}"
    answer = call(site, "POST", "/servers", {"server": server}, by=site.admin if host is not None else None)
    if answer.is_accepted:
        subject.uuid = json.loads(answer.text)["server"]["id"]
    return answer


def _create_on_volume(site: Site, subject: Subject) -> Answer:
    return create(site, subject, on_volume=True)


def _delete(site: Site, subject: Subject) -> Answer:
    return call(site, "DELETE", f"/servers/{subject.uuid}")


def _offload(site: Site, subject: Subject) -> Answer:
    """The field lets administrators do that."""
    return call(site, "POST", f"/servers/{subject.uuid}/action", {"shelveOffload": None}, by=site.admin)


def _attach_volume(site: Site, subject: Subject) -> Answer:
    body = {"volumeAttachment": {"volumeId": subject.volume_id}}
    return call(site, "POST", f"/servers/{subject.uuid}/os-volume_attachments", body)


def _detach_volume(site: Site, subject: Subject) -> Answer:
    return call(site, "DELETE", f"/servers/{subject.uuid}/os-volume_attachments/{subject.volume_id}")


def _swap_volume(site: Site, subject: Subject) -> Answer:
    """As block storage asks for it, which has made a volume to move the server's to."""
    storage = site.admin.block_storage
    new = site.member.block_storage.create_volume(size=1, name=f"{subject.name}-moved").id
    assert until(lambda: storage.get_volume(new).status, lambda status: status == "available") == "available"
    for volume_id, status in ((subject.volume_id, "migrating"), (new, f"target:{subject.volume_id}")):
        body = {"os-reset_status": {"migration_status": status}}
        assert storage.post(f"/volumes/{volume_id}/action", json=body).status_code == 202
    path = f"/servers/{subject.uuid}/os-volume_attachments/{subject.volume_id}"
    return call(site, "PUT", path, {"volumeAttachment": {"volumeId": new}}, by=site.admin)


def _awaited_snapshot(site: Site, subject: Subject, status: str) -> str:
    """One of which block storage waits to hear what became of it."""
    storage = site.member.block_storage
    body = {"snapshot": {"volume_id": subject.volume_id, "name": ASSISTED, "force": True}}
    found = str(storage.post("/snapshots", json=body).json()["snapshot"]["id"])
    seen = until(lambda: storage.get_snapshot(found).status, lambda status: status != "creating")
    assert seen == "available"
    path = f"/snapshots/{found}/action"
    assert site.admin.block_storage.post(path, json={"os-reset_status": {"status": status}}).status_code == 202
    return found


def _snapshot_volume(site: Site, subject: Subject) -> Answer:
    query = {"volume_id": subject.volume_id, "all_tenants": "1"}
    (attachment,) = site.admin.block_storage.get("/attachments/detail", params=query).json()["attachments"]
    new = Path(attachment["connection_info"]["device_path"]).with_name(f"snapshot-{uuids.uuid4()}")
    new.touch()
    info = {"snapshot_id": _awaited_snapshot(site, subject, "creating"), "type": "qcow2", "new_file": new.name}
    body = {"snapshot": {"volume_id": subject.volume_id, "create_info": info}}
    return call(site, "POST", "/os-assisted-volume-snapshots", body, by=site.admin)


def _merge_files(site: Site, subject: Subject) -> Answer:
    info = quote(json.dumps({"volume_id": subject.volume_id}))
    path = f"/os-assisted-volume-snapshots/{_awaited_snapshot(site, subject, 'deleting')}?delete_info={info}"
    return call(site, "DELETE", path, by=site.admin)


def _refresh_attachment(site: Site, subject: Subject) -> Answer:
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


def _plug(site: Site, subject: Subject) -> Answer:
    body = {"interfaceAttachment": {"net_id": site.network_id}}
    return call(site, "POST", f"/servers/{subject.uuid}/os-interface", body)


def _plug_device(site: Site, subject: Subject) -> Answer:
    body = {"interfaceAttachment": {"port_id": subject.port_id}}
    return call(site, "POST", f"/servers/{subject.uuid}/os-interface", body)


def _unplug(site: Site, subject: Subject) -> Answer:
    return call(site, "DELETE", f"/servers/{subject.uuid}/os-interface/{subject.port_id}")


def _back_up(site: Site, subject: Subject, number: int = 2) -> Answer:
    return act(site, subject, "createBackup", {"name": f"backup{number}", "backup_type": "daily", "rotation": 1})


def _evacuate(site: Site, subject: Subject) -> Answer:
    """By a version in which the server runs afterwards: from 2.95 on its user starts it."""
    body: dict[str, Any] = {"evacuate": {}}
    return call(site, "POST", f"/servers/{subject.uuid}/action", body, by=site.admin, microversion="2.94")


def _unshelve_elsewhere(site: Site, subject: Subject) -> Answer:
    body = {"unshelve": {"host": "cell2-host1"}}
    return call(site, "POST", f"/servers/{subject.uuid}/action", body, by=site.admin)


def _migrate_live(site: Site, subject: Subject) -> Answer:
    body = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
    return call(site, "POST", f"/servers/{subject.uuid}/action", body, by=site.admin)


def _migrate_near_live(site: Site, subject: Subject) -> Answer:
    """To the other cell."""
    shown = json.loads(call(site, "GET", f"/servers/{subject.uuid}", by=site.admin).text)["server"]
    host = f"cell{2 if shown['OS-EXT-SRV-ATTR:host'].startswith('cell1') else 1}-host1"
    body = {"os-migrateLive": {"host": host, "block_migration": "auto"}}
    return call(site, "POST", f"/servers/{subject.uuid}/action", body, by=site.admin)


def _migrate_across_cells(site: Site, subject: Subject) -> Answer:
    """To a host of the other cell that reaches the server's."""
    body = {"os-migrateLive": {"host": "cell2-host2", "block_migration": "auto"}}
    return call(site, "POST", f"/servers/{subject.uuid}/action", body, by=site.admin)


# preparing


def status_of(site: Site, subject: Subject) -> tuple[str | None, str | None]:
    """(status, task) as users see them; None, None if there is no such server."""
    answer = call(site, "GET", f"/servers/{subject.uuid}")
    if answer.status == 404:
        return None, None
    assert answer.is_accepted, f"its user is answered {answer.status} {answer.text[:200]}"
    server = json.loads(answer.text)["server"]
    return server["status"], server["OS-EXT-STS:task_state"]


def wait_for(site: Site, subject: Subject, status: str, patience: float = PATIENCE) -> None:
    seen = until(
        lambda: status_of(site, subject), lambda seen: seen[1] is None and seen[0] in (status, "ERROR"), patience
    )
    assert seen == (status, None), f"a server does not become {status}: it is {seen[0]} with task {seen[1]}"


def _nothing(site: Site, subject: Subject) -> None:
    """There is no server yet."""


def _with_port(site: Site, subject: Subject) -> None:
    subject.port_id = site.member.network.create_port(network_id=site.network_id, name=subject.name).id


def _server(
    site: Site, subject: Subject, *, on_volume: bool = False, host: str | None = None, flavor: str = FLAVOR
) -> None:
    answer = create(site, subject, on_volume=on_volume, host=host, flavor=flavor)
    assert answer.is_accepted, answer
    wait_for(site, subject, "ACTIVE")
    assert subject.uuid is not None
    site.guests.mark(subject.uuid, mark(subject.uuid))


def _server_on_volume(site: Site, subject: Subject) -> None:
    _server(site, subject, on_volume=True)


def _anywhere(site: Site, subject: Subject) -> None:
    _server(site, subject, flavor="any.small")


def _anywhere_on_volume(site: Site, subject: Subject) -> None:
    _server(site, subject, on_volume=True, flavor="any.small")


def _reached(site: Site, subject: Subject, *, on_volume: bool = False) -> None:
    _server(site, subject, on_volume=on_volume, host="cell1-host2", flavor="any.small")


def _reached_on_volume(site: Site, subject: Subject) -> None:
    _reached(site, subject, on_volume=True)


def _on_dying_host(site: Site, subject: Subject, *, on_volume: bool = False) -> None:
    _server(site, subject, on_volume=on_volume, host=DYING)


def _on_dying_host_and_volume(site: Site, subject: Subject) -> None:
    _on_dying_host(site, subject, on_volume=True)


def _shelved(site: Site, subject: Subject) -> None:
    _server(site, subject)
    assert act(site, subject, "shelve").is_accepted
    wait_for(site, subject, "SHELVED_OFFLOADED")


def _shelved_anywhere(site: Site, subject: Subject) -> None:
    """In cell1, from where it may go to the other one."""
    _server(site, subject, host="cell1-host2", flavor="any.small")
    assert act(site, subject, "shelve").is_accepted
    wait_for(site, subject, "SHELVED_OFFLOADED")


def _drain_records(site: Site, subject: Subject) -> Answer:
    assert subject.uuid is not None
    return drained.begin_records(site, subject.uuid)


def _shelved_on_host(site: Site, subject: Subject) -> None:
    _server(site, subject)
    assert act(site, subject, "shelve").is_accepted
    wait_for(site, subject, "SHELVED")


def _with_volume(site: Site, subject: Subject) -> None:
    storage = site.member.block_storage
    subject.volume_id = volume_id = storage.create_volume(size=1, name=subject.name).id
    _server(site, subject)
    assert until(lambda: storage.get_volume(volume_id).status, lambda status: status == "available") == "available"


def _with_attached_volume(site: Site, subject: Subject) -> None:
    _with_volume(site, subject)
    answer = _attach_volume(site, subject)
    assert answer.is_accepted, answer


def _off_with_attached_volume(site: Site, subject: Subject) -> None:
    _with_attached_volume(site, subject)
    assert act(site, subject, "os-stop").is_accepted
    wait_for(site, subject, "SHUTOFF")


def _rescued(site: Site, subject: Subject) -> None:
    _server(site, subject)
    assert act(site, subject, "rescue").is_accepted
    wait_for(site, subject, "RESCUE")


def _with_free_device_port(site: Site, subject: Subject) -> None:
    _server(site, subject)
    subject.port_id = site.member.network.create_port(
        network_id=site.network_id, name=subject.name, binding_vnic_type="direct"
    ).id


def _with_device_port(site: Site, subject: Subject) -> None:
    _with_free_device_port(site, subject)
    answer = _plug_device(site, subject)
    assert answer.is_accepted, answer


def _with_second_port(site: Site, subject: Subject) -> None:
    _server(site, subject)
    answer = _plug(site, subject)
    assert answer.is_accepted, answer
    subject.port_id = json.loads(answer.text)["interfaceAttachment"]["port_id"]


def _with_backup(site: Site, subject: Subject) -> None:
    _server(site, subject)
    answer = _back_up(site, subject, 1)
    assert answer.is_accepted, answer
    wait_for(site, subject, "ACTIVE")


OPERATIONS = [
    Operation(
        "create image-backed",
        _nothing,
        create,
        lambda now, _: now.status == "ACTIVE",
        may_end_in_error=True,
        recipes=("build",),
    ),
    Operation(
        "create volume-backed",
        _with_port,
        _create_on_volume,
        lambda now, _: now.status == "ACTIVE",
        may_end_in_error=True,
        recipes=("build",),
    ),
    Operation(
        "delete image-backed",
        _with_attached_volume,
        _delete,
        lambda now, _: now.status is None,
        recipes=("delete",),
    ),
    Operation(
        "delete volume-backed", _server_on_volume, _delete, lambda now, _: now.status is None, recipes=("delete",)
    ),
    Operation(
        "shelve image-backed",
        _server,
        lambda site, subject: act(site, subject, "shelve"),
        lambda now, _: now.status in ("SHELVED", "SHELVED_OFFLOADED"),
        recipes=("shelve",),
    ),
    Operation(
        "shelve volume-backed",
        _server_on_volume,
        lambda site, subject: act(site, subject, "shelve"),
        lambda now, _: now.status == "SHELVED_OFFLOADED",
        recipes=("shelve",),
    ),
    Operation(
        "offload",
        _shelved_on_host,
        _offload,
        lambda now, _: now.status == "SHELVED_OFFLOADED",
        offloads=False,
        recipes=("shelve_offload",),
    ),
    Operation(
        "unshelve",
        _shelved,
        lambda site, subject: act(site, subject, "unshelve"),
        lambda now, _: now.status == "ACTIVE",
        recipes=("unshelve",),
    ),
    Operation(
        "move records",
        _shelved_anywhere,
        _drain_records,
        lambda now, before: now.status == "SHELVED_OFFLOADED" and now.cell != before.cell,
        recipes=("move_records",),
        only=("drain.", "move_records."),
    ),
    Operation(
        "rebuild",
        _server,
        lambda site, subject: act(site, subject, "rebuild", {"imageRef": site.image_id}),
        lambda now, _: now.status == "ACTIVE" and now.marks == 0,
        may_end_in_error=True,
        loses_disk=True,
        recipes=("rebuild",),
    ),
    Operation(
        "rebuild volume-backed",
        _server_on_volume,
        lambda site, subject: call(
            site,
            "POST",
            f"/servers/{subject.uuid}/action",
            {"rebuild": {"imageRef": site.image_id}},
            microversion="2.93",
        ),
        lambda now, _: now.status == "ACTIVE" and now.marks == 0,
        may_end_in_error=True,
        loses_disk=True,
        recipes=("rebuild_volume",),
    ),
    Operation(
        "rescue",
        _server,
        lambda site, subject: act(site, subject, "rescue"),
        lambda now, _: now.status == "RESCUE",
        recipes=("rescue",),
    ),
    Operation(
        "unrescue",
        _rescued,
        lambda site, subject: act(site, subject, "unrescue"),
        lambda now, _: now.status == "ACTIVE",
        recipes=("unrescue",),
    ),
    Operation(
        "evacuate image-backed",
        _on_dying_host,
        _evacuate,
        lambda now, _: now.status == "ACTIVE" and now.host != DYING,
        may_end_in_error=True,
        loses_disk=True,
        recipes=("evacuate",),
        kills_host=DYING,
    ),
    Operation(
        "evacuate volume-backed",
        _on_dying_host_and_volume,
        _evacuate,
        lambda now, _: now.status == "ACTIVE" and now.host != DYING,
        may_end_in_error=True,
        recipes=("evacuate",),
        kills_host=DYING,
    ),
    Operation(
        "live-migrate image-backed",
        _with_attached_volume,
        _migrate_live,
        lambda now, before: now.status == "ACTIVE" and now.host != before.host,
        recipes=("live_migration",),
    ),
    Operation(
        "live-migrate volume-backed",
        _server_on_volume,
        _migrate_live,
        lambda now, before: now.status == "ACTIVE" and now.host != before.host,
        recipes=("live_migration",),
    ),
    Operation(
        "live-migrate across cells image-backed",
        _reached,
        _migrate_across_cells,
        lambda now, _: now.status == "ACTIVE" and now.host == "cell2-host2",
        recipes=("cross_cell_live_migration",),
    ),
    Operation(
        "live-migrate across cells volume-backed",
        _reached_on_volume,
        _migrate_across_cells,
        lambda now, _: now.status == "ACTIVE" and now.host == "cell2-host2",
        recipes=("cross_cell_live_migration",),
    ),
    Operation(
        "near-live-migrate image-backed",
        _anywhere,
        _migrate_near_live,
        lambda now, before: now.status == "ACTIVE" and str(now.host)[:5] != str(before.host)[:5],
        recipes=("near_live_migration",),
    ),
    Operation(
        "near-live-migrate volume-backed",
        _anywhere_on_volume,
        _migrate_near_live,
        lambda now, before: now.status == "ACTIVE" and str(now.host)[:5] != str(before.host)[:5],
        recipes=("near_live_migration",),
    ),
    Operation(
        "unshelve across cells",
        _shelved_anywhere,
        _unshelve_elsewhere,
        lambda now, _: now.status == "ACTIVE" and now.host == "cell2-host1",
        recipes=("unshelve_across_cells", "unshelve"),
        may_leave_cell=True,
    ),
    Operation(
        "attach volume",
        _with_volume,
        _attach_volume,
        lambda now, before: len(now.recorded_volumes) == len(before.recorded_volumes) + 1,
        recipes=("attach_volume",),
    ),
    Operation(
        "detach volume",
        _with_attached_volume,
        _detach_volume,
        lambda now, before: len(now.recorded_volumes) == len(before.recorded_volumes) - 1,
        recipes=("detach_volume",),
    ),
    Operation(
        "swap volume",
        _with_attached_volume,
        _swap_volume,
        lambda now, _: now.has_moved_volume,
        recipes=("swap_volume",),
    ),
    Operation(
        "snapshot volume",
        _with_attached_volume,
        _snapshot_volume,
        lambda now, before: len(now.assisted) > len(before.assisted),
        recipes=("snapshot_volume",),
    ),
    Operation(
        "merge files of a volume",
        _with_attached_volume,
        _merge_files,
        lambda now, before: len(now.assisted) > len(before.assisted),
        recipes=("merge_volume_files",),
    ),
    Operation(
        "refresh attachment",
        _off_with_attached_volume,
        _refresh_attachment,
        lambda now, before: (
            now.attachment_ids != before.attachment_ids and {status for _, status in now.attachments} == {"attached"}
        ),
        recipes=("refresh_attachment",),
        while_off=True,
    ),
    Operation(
        "plug",
        _server,
        _plug,
        lambda now, before: len(now.addresses) == len(before.addresses) + 1,
        recipes=("attach_interface",),
    ),
    Operation(
        "unplug",
        _with_second_port,
        _unplug,
        lambda now, before: len(now.addresses) == len(before.addresses) - 1,
        recipes=("detach_interface",),
    ),
    Operation(
        "plug device",
        _with_free_device_port,
        _plug_device,
        lambda now, before: len(now.addresses) == len(before.addresses) + 1,
        recipes=("attach_interface",),
    ),
    Operation(
        "unplug device",
        _with_device_port,
        _unplug,
        lambda now, before: len(now.addresses) == len(before.addresses) - 1,
        recipes=("detach_interface",),
    ),
    Operation(
        "create image",
        _server,
        lambda site, subject: act(site, subject, "createImage", {"name": "picture"}),
        lambda now, _: ("picture", "active") in now.images,
        keeps_images=("picture",),
        recipes=("create_image",),
    ),
    Operation(
        "create volume image",
        _server_on_volume,
        lambda site, subject: act(site, subject, "createImage", {"name": "picture"}),
        lambda now, _: ("picture", "active") in now.images and now.snapshots == ["available"],
        keeps_images=("picture",),
        recipes=("create_volume_image",),
    ),
    Operation(
        "create backup",
        _with_backup,
        _back_up,
        lambda now, _: ("backup2", "active") in now.images,
        keeps_images=("backup1", "backup2"),
        recipes=("create_backup",),
    ),
]
