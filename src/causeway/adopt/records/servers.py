"""Servers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from causeway.adopt.nova.objects import UnknownRecord, load
from causeway.adopt.records import block_devices, devices, history, images
from causeway.adopt.records.flavors import flavor_of, optional_flavor
from causeway.adopt.records.guest_name import guest_name_of
from causeway.adopt.records.lengths import require_fitting
from causeway.adopt.records.network import vifs_of
from causeway.adopt.records.server_rows import Row, ServerRows, Surroundings
from causeway.model import rescue
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance, InstanceAction, InstanceFault, KeyPair
from causeway.model.migration import Migration
from causeway.model.soft_deleted import SINCE
from causeway.model.states import PowerState, TaskState, VmState
from causeway.scheduler.request import RequestSpec

# As long as a disk may be encrypted, its key is of a kind that has no place here.
_ENCRYPTED = "is encrypted by Nova (not by its volume), which has no place here"


@dataclass
class ImportedServer:
    """``waits_for``: why it can't be taken over as it is now, and what to do; None: it can."""

    instance: Instance
    spec: RequestSpec
    block_devices: list[BlockDevice] = field(default_factory=list)
    actions: list[InstanceAction] = field(default_factory=list)
    fault: InstanceFault | None = None
    migrations: list[Migration] = field(default_factory=list)
    waits_for: str | None = None


def server_of(rows: ServerRows, around: Surroundings) -> ImportedServer:
    """Raises UnknownRecord if a record of the server has no known form."""
    row = rows.instance
    what = f"Server {row['uuid']}"
    spec = load(rows.request_spec, f"The request of server {row['uuid']}") or {}
    found = block_devices.block_devices_of(rows.block_devices, what)
    instance = _instance(rows, around, spec, what)
    require_fitting(instance, found, what)
    server = ImportedServer(
        instance,
        _request(instance, spec, found),
        found,
        history.actions_of(rows.actions, rows.events),
        history.fault_of(rows.fault) if rows.fault is not None else None,
        history.migrations_of(rows.migrations, around.cells, what),
    )
    server.waits_for = _waits_for(rows, server)
    return server


def _waits_for(rows: ServerRows, server: ImportedServer) -> str | None:
    instance = server.instance
    if instance.task_state is not None:
        return f"its task {instance.task_state} runs in Nova: wait until it has ended, or reset its state there"
    if instance.vm_state is VmState.BUILDING:
        return "it is being built: wait until it is, or delete it in Nova"
    if instance.vm_state is VmState.RESIZED:
        return "its resize waits for confirm or revert: do either in Nova"
    under_way = [each for each in server.migrations if history.is_under_way(each)]
    if under_way:
        return f"migration {under_way[0].uuid} is {under_way[0].status}: wait until it has ended, or correct it in Nova"
    if any(row["encrypted"] for row in rows.block_devices):
        return f"a disk of it {_ENCRYPTED}"
    if rows.extra["vpmems"] or _names_device(rows.extra["resources"]):
        return "it has persistent memory or a mediated device (vGPU), which has no place here"
    return None


def _names_device(resources: str | None) -> bool:
    return bool((load(resources, "Resources of a server") or {}).get("objects"))


def _instance(rows: ServerRows, around: Surroundings, spec: dict[str, Any], what: str) -> Instance:
    row, system = rows.instance, dict(rows.system_metadata)
    vm_state, image_ref = _state(row, what), row["image_ref"] or ""
    flavors = load(rows.extra["flavor"], f"The flavor of server {row['uuid']}") or {}
    _complete(system, row, vm_state, image_ref)
    host = row["host"] or None
    return Instance(
        uuid=row["uuid"],
        project_id=row["project_id"],
        user_id=row["user_id"],
        display_name=row["display_name"] or "",
        display_description=row["display_description"],
        flavor=flavor_of(flavors.get("cur"), f"The flavor of server {row['uuid']}"),
        old_flavor=optional_flavor(flavors.get("old"), what),
        new_flavor=optional_flavor(flavors.get("new"), what),
        hostname=row["hostname"] or "",
        reservation_id=row["reservation_id"] or "",
        launch_index=row["launch_index"] or 0,
        host=host,
        node=row["node"] if host is not None else None,
        availability_zone=row["availability_zone"],
        pinned_availability_zone=spec.get("availability_zone"),
        vm_state=vm_state,
        task_state=_task(row, what),
        power_state=_power(row),
        progress=row["progress"] or 0,
        image_ref=image_ref,
        image_meta=images.image_of(system, image_ref, spec.get("image")),
        kernel_id=row["kernel_id"] or "",
        ramdisk_id=row["ramdisk_id"] or "",
        key_name=row["key_name"],
        keypairs=_keypairs(rows.extra["keypairs"], what),
        user_data=row["user_data"],
        # A text, which was the id of an image long ago.
        config_drive=bool(row["config_drive"]) and str(row["config_drive"]).lower() not in ("false", "0"),
        root_device_name=row["root_device_name"],
        access_ip_v4=row["access_ip_v4"],
        access_ip_v6=row["access_ip_v6"],
        auto_disk_config=bool(row["auto_disk_config"]),
        locked=bool(row["locked"]),
        locked_by=row["locked_by"],
        locked_reason=system.get("locked_reason"),
        old_vm_state=VmState(system["old_vm_state"]) if system.get("old_vm_state") in set(VmState) else None,
        numa_topology=devices.held_topology(
            load(rows.extra["numa_topology"], what), around.topologies.get(host or ""), what
        ),
        pci_requests=devices.pci_requests_of(load(rows.extra["pci_requests"], what), what),
        pci_devices=devices.pci_devices_of(rows.pci_devices, what),
        trusted_image_certificates=(load(rows.extra["trusted_certs"], what) or {}).get("ids"),
        metadata=dict(rows.metadata),
        system_metadata=system,
        tags=sorted(rows.tags),
        network_info=vifs_of(load(rows.network_info, what), rows.vif_tags, f"The network info of server {row['uuid']}"),
        guest_name=guest_name_of(around.name_template, row),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        launched_at=row["launched_at"],
        terminated_at=row["terminated_at"],
    )


def _complete(system: dict[str, str], row: Row, vm_state: VmState, image_ref: str) -> None:
    """Adds what Nova keeps elsewhere, or not at all."""
    if vm_state is VmState.SOFT_DELETED:
        since = row["deleted_at"] or row["updated_at"] or row["created_at"]
        system.setdefault(SINCE, since.isoformat())
    if vm_state is VmState.RESCUED:
        # Nova boots this one if the user names none; which one the user named is not known.
        system.setdefault(rescue.IMAGE, system.get(images.BASE_IMAGE) or image_ref)


def _state(row: Row, what: str) -> VmState:
    try:
        return VmState(row["vm_state"])
    except ValueError as failure:
        raise UnknownRecord(f"{what} has the unknown state {row['vm_state']}.") from failure


def _task(row: Row, what: str) -> TaskState | None:
    if not row["task_state"]:
        return None
    try:
        return TaskState(row["task_state"])
    except ValueError as failure:
        raise UnknownRecord(
            f"{what} has the task {row['task_state']} in Nova: wait until it has ended, or reset its state there."
        ) from failure


def _power(row: Row) -> PowerState:
    known = {int(state) for state in PowerState}
    return PowerState(row["power_state"]) if row["power_state"] in known else PowerState.NOSTATE


def _keypairs(text: str | None, what: str) -> list[KeyPair]:
    listed = (load(text, what) or {}).get("objects") or []
    try:
        return [
            KeyPair(each["name"], each["user_id"], each["public_key"], each["fingerprint"], each.get("type") or "ssh")
            for each in listed
        ]
    except (KeyError, TypeError) as failure:
        raise UnknownRecord(f"{what}: its key pairs have no known form: {failure!r}") from failure


def _request(instance: Instance, spec: dict[str, Any], found: list[BlockDevice]) -> RequestSpec:
    flavor: Flavor = instance.flavor
    image: ImageMeta | None = instance.image_meta
    hints = {name: list(values) for name, values in (spec.get("scheduler_hints") or {}).items()}
    return RequestSpec(
        instance.uuid,
        instance.project_id,
        instance.user_id,
        flavor,
        image=image,
        is_volume_backed=is_volume_backed(found),
        num_instances=spec.get("num_instances") or 1,
        availability_zone=spec.get("availability_zone"),
        scheduler_hints=hints,
    )


__all__ = ["ImportedServer", "server_of"]
