"""Reserves and records ports and volumes of servers.

They are made in `causeway.devices.making` and released in `causeway.devices.releasing`.
"""

from __future__ import annotations

import logging
import string
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.clients.rights import CalledAs
from causeway.clients.volume import Volume
from causeway.context import RequestContext, admin_context
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.outcomes import GuestOutcome
from causeway.model.sagas import ENDED, SagaState
from causeway.model.states import MIGRATION_ENDED, TaskState
from causeway.running.services import ConductorServices
from causeway.store.api import journal, migrations
from causeway.store.cell import block_devices, instances
from causeway.store.database import Database

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeptForRevert:
    """The attachment with which the source of a resize (``move_id``) reserves a volume until its confirm or revert."""

    move_id: str
    volume_id: str
    attachment_id: str


def next_device_name(devices: list[BlockDevice]) -> str:
    """The first name that no device has: /dev/vda, /dev/vdb, ... Raises Forbidden if all are taken."""
    taken = {device.device_name for device in devices}
    for letter in string.ascii_lowercase:
        if (name := f"/dev/vd{letter}") not in taken:
            return name
    raise errors.Forbidden(
        f"The maximum allowed number of disk devices ({len(string.ascii_lowercase)}) to attach to a single instance has been"
        " exceeded."
    )


def name_devices(devices: list[BlockDevice]) -> None:
    """Names the devices that have no name, in Nova's order: root, ephemeral disks, swap, volumes."""
    for device in sorted(devices, key=lambda device: (not device.is_root, not device.is_ephemeral, not device.is_swap)):
        device.device_name = device.device_name or next_device_name(devices)


def save_connections_in(connection: sa.Connection, outcome: GuestOutcome) -> None:
    """Records how a compute connected the volumes of a guest."""
    for device in outcome.block_devices:
        block_devices.update_in(
            connection, device.uuid, attachment_id=device.attachment_id, connection_info=device.connection_info
        )


def seen_ports_in(connection: sa.Connection, uuid: str, seen: list[Vif]) -> list[Vif]:
    """The ports of the server's record, updated with what a host has seen. Ports attached or detached since then stay so.

    Locks the server's row. Raises ServerNotFound.
    """
    known = {vif.id: vif for vif in seen}
    return [known.get(vif.id, vif) for vif in instances.get_in(connection, uuid, with_tags=False).network_info]


def save_guest(
    database: Database,
    uuid: str,
    outcome: GuestOutcome,
    *,
    expected_task: Collection[TaskState | None] | None = None,
    **changes: Any,
) -> bool:
    """Records what a compute reported of a guest. Returns False if the server was deleted, or is being deleted."""
    with database.write() as connection:
        save_connections_in(connection, outcome)
        try:
            instances.swap_in(
                connection,
                uuid,
                expected_task=expected_task,
                power_state=outcome.power_state,
                network_info=seen_ports_in(connection, uuid, outcome.network_info),
                **(changes | outcome.renamed),
            )
        except (errors.StateChanged, errors.ServerNotFound) as change:
            LOG.info("Server %s is not what it was when its guest was made: %s", uuid, change.message)
            return False
    return True


def reserve_volume(
    services: ConductorServices,
    context: RequestContext,
    volume_id: str,
    instance_uuid: str,
    known: Callable[[], set[str | None]],
    *,
    called_as: CalledAs,
) -> str:
    """Reserves a volume for a server. Returns the id of an unconnected attachment. ``called_as``: see `create_attachment`.

    The volume service chooses the id. If its answer is lost, the reservation may exist: then it is used. ``known``: returns
    the recorded attachments, which are not it.
    """
    try:
        return services.volumes.create_attachment(context, volume_id, instance_uuid, called_as=called_as).id
    except errors.ServiceFailed as failure:
        if isinstance(failure, errors.ServiceRefused):
            raise
        others = known() | noted_by_operations(services, instance_uuid)
        for found in services.volumes.attachments_of_server(context, instance_uuid, volume_id=volume_id):
            if found.id not in others and not found.is_connected:
                return found.id
        raise


def check_zone(services: ConductorServices, instance: Instance, volume: Volume) -> None:
    """Raises InvalidVolume if volumes must be in their server's zone ([cinder] cross_az_attach) and this one is not."""
    if not services.conf.cinder.cross_az_attach and volume.availability_zone != instance.availability_zone:
        raise errors.InvalidVolume(
            f"Invalid volume: Instance {instance.uuid} and volume {volume.id} are not in the same availability_zone. "
            f"Instance is in {instance.availability_zone}. Volume is in {volume.availability_zone}"
        )


def release_volume(
    services: ConductorServices, context: RequestContext, instance_uuid: str, volume_id: str, attachment_id: str
) -> None:
    """Deletes the server's attachment of a volume that its guest no longer uses. May be repeated.

    A slow conductor may have connected the volume once more for a live migration: that attachment is deleted too.
    """
    left = services.volumes.delete_attachment(context, attachment_id)
    if left is None or any(each.instance_uuid == instance_uuid for each in left):
        release_reservations(services, context, instance_uuid, volume_id, set())


def release_reservations(
    services: ConductorServices, context: RequestContext, instance_uuid: str, volume_id: str, known: set[str | None]
) -> bool:
    """Deletes the server's unrecorded attachments of a volume: those neither ``known`` nor needed for a revert.

    Returns whether the server had any attachment of it.
    """
    kept = known | noted_by_operations(services, instance_uuid)
    ours = admin_context(request_id=context.request_id)
    attachments = services.volumes.attachments_of_server(context, instance_uuid, volume_id=volume_id)
    for found in attachments:
        if found.id not in kept:
            services.volumes.delete_attachment(ours, found.id)
    return bool(attachments)


def noted_by_operations(services: ConductorServices, instance_uuid: str) -> set[str | None]:
    """The attachments that moves of the server need: all of a move under way, and the source's of a move that may be reverted.

    Other attachments of moves are in the server's record by now, or orphaned.
    """
    found = migrations.search(services.api, instance_uuid=instance_uuid)
    not_ended = {each.uuid for each in found if each.status not in MIGRATION_ENDED}
    noted: set[str | None] = set()
    for operation in journal.of_server(services.api, instance_uuid):
        pairs = operation.data.get("attachments", [])
        if operation.state not in ENDED:
            noted |= {pair[side] for pair in pairs for side in ("source", "target")}
        elif operation.state is SagaState.DONE and operation.migration_uuid in not_ended:
            noted |= {pair["source"] for pair in pairs}
    return noted


def kept_for_revert(services: ConductorServices, instance: Instance, volume_id: str) -> KeptForRevert | None:
    """The reservation of a volume for the source of the server's resize, which waits for confirm or revert."""
    if instance.migration_context is None:
        return None
    for operation in journal.of_migration(services.api, instance.migration_context.migration_uuid):
        if operation.recipe not in journal.RESIZES or operation.state is not SagaState.DONE:
            continue
        for pair in operation.data.get("attachments", []):
            if pair["volume_id"] == volume_id and pair["source"] is not None:
                return KeptForRevert(operation.id, volume_id, pair["source"])
    return None
