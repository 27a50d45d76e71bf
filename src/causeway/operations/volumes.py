"""Attaches volumes to existing servers, and detaches them.

The requester of an attach waits for its end, so an attach that its conductor does not finish is undone. An accepted detach is
carried out, whatever happens. It fails only if the guest keeps the volume; then everything is as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import sqlalchemy as sa

from causeway import errors
from causeway.clients.rights import named
from causeway.devices import device_records, half_reserved
from causeway.model import operations
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.states import TaskState
from causeway.model.things import Thing
from causeway.operations import device_endings
from causeway.running.operation_run import OperationRun
from causeway.running.patience import ServerStep, While
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import guests
from causeway.store.api import reservations
from causeway.store.cell import block_devices, instances


@dataclass
class AttachMemory:
    """``resource_id``: of the volume. ``device``: the requested name. ``mapping``: the device, once the volume is reserved."""

    resource_id: str
    device: Given[str | None] = None
    tag: Given[str | None] = None
    delete_on_termination: Given[bool] = False
    mapping: BlockDevice | None = None


@dataclass
class DetachMemory:
    """``resource_id``: of the volume. ``mapping``: as the server had it. ``is_kept``: the guest does not release it.

    ``reserved``: what a resize that waits for its confirm has reserved at its source.
    """

    resource_id: str
    mapping: BlockDevice | None = None
    is_kept: bool = False
    reserved: device_records.KeptForRevert | None = None


Attach: TypeAlias = OperationRun[AttachMemory]
Detach: TypeAlias = OperationRun[DetachMemory]


class ReserveVolume(ServerStep[Attach]):
    """Reserves the volume for the server, and adds it to the server's record."""

    name = "ReserveVolume"
    reads = frozenset({"delete_on_termination", "device", "resource_id", "tag"})
    writes = frozenset({"mapping"})
    makes = frozenset({Thing.ATTACHMENT})

    def retried_while(self, run: Attach) -> While:  # noqa: ARG002
        return While.REQUESTER_WAITS

    def do(self, run: Attach) -> None:
        services, memory, instance = run.services, run.memory, run.instance(tags=False)
        device_endings.begin(run)
        with run.event("compute_reserve_block_device_name", instance.host or ""):
            volume = services.volumes.show(run.context, memory.resource_id)
            device_records.check_zone(services, instance, volume)
            mapping = BlockDevice(
                # The attachment is in the operation's memory, so the undo can delete it.
                uuid=run.saga.id,
                instance_uuid=run.uuid,
                source_type="volume",
                destination_type="volume",
                volume_id=memory.resource_id,
                volume_size=volume.size,
                multiattach=volume.multiattach,
                tag=memory.tag,
                delete_on_termination=memory.delete_on_termination,
            )
            mapping.attachment_id = device_records.reserve_volume(
                services,
                run.context,
                memory.resource_id,
                run.uuid,
                run.attachments,
                called_as=named(memory.resource_id),
            )
            # If an attempt is interrupted here, everything that the undo needs is recorded.
            memory.mapping = mapping
            with run.database.write() as connection:
                self._refuse_if_deleted(connection, run)
                # The server's row is locked now, so no other attach takes the same name.
                mapping.device_name = self._name(memory, block_devices.of_instance_in(connection, run.uuid))
                block_devices.insert(connection, [mapping])

    def _refuse_if_deleted(self, connection: sa.Connection, run: Attach) -> None:
        """Raises StateChanged if the server is being deleted: the delete releases only the volumes recorded before."""
        if instances.get_in(connection, run.uuid, with_tags=False).task_state is TaskState.DELETING:
            raise errors.StateChanged(f"Server {run.uuid} is being deleted: it gets no volume.")

    def _name(self, memory: AttachMemory, present: list[BlockDevice]) -> str:
        """The name that the volume gets. Raises Conflict if the requested one is in use, BadRequest if the volume is there."""
        if any(other.volume_id == memory.resource_id for other in present):
            # Another request for the same volume came first.
            raise errors.BadRequest(
                f"Invalid volume: volume {memory.resource_id} is already attached to instance {present[0].instance_uuid}."
            )
        if memory.device is not None and any(other.device_name == memory.device for other in present):
            raise errors.Conflict(f"The supplied device path ({memory.device}) is in use.")
        return memory.device or device_records.next_device_name(present)

    def undo(self, run: Attach) -> None:
        mapping = run.memory.mapping
        if mapping is not None and mapping.attachment_id is not None:
            run.services.volumes.delete_attachment(run.context, mapping.attachment_id)
        else:
            # The server may have had the volume before.
            known = {device.attachment_id for device in run.devices() if device.uuid != run.saga.id}
            had = device_records.release_reservations(
                run.services, run.context, run.uuid, run.memory.resource_id, known
            )
            if not had and half_reserved.is_in_doubt(run):
                half_reserved.end(run.services, run.context, run.instance(tags=False), run.memory.resource_id)
        block_devices.delete(run.database, run.saga.id)


class ConnectVolume(ServerStep[Attach]):
    """Attaches the volume to the guest. A server without a host gets the volume when it is unshelved."""

    name = "ConnectVolume"
    writes = frozenset({"mapping"})
    makes = frozenset({Thing.DEVICE})

    def where(self, run: Attach) -> str | None:
        return run.instance(tags=False).host

    def retried_while(self, run: Attach) -> While:  # noqa: ARG002
        return While.REQUESTER_WAITS

    def do(self, run: Attach) -> None:
        mapping, instance = run.memory.mapping, run.instance(tags=False)
        if mapping is None:
            raise RuntimeError("the volume was not reserved")
        with run.event(run.kind.event, instance.host or ""):
            if instance.host is None:
                # As in Nova, the volume stays in use.
                run.services.volumes.complete_attachment(run.context, mapping.attachment_id or "")
            else:
                mapping = run.computes.connect_volume(
                    run.context,
                    instance.host,
                    token=run.token(self.name),
                    instance=instance,
                    block_device=mapping,
                )
        run.memory.mapping = mapping
        with run.database.write() as connection:
            block_devices.update_in(connection, mapping.uuid, connection_info=mapping.connection_info)
            run.write_history(connection)

    def undo(self, run: Attach) -> None:
        instance, mapping = device_endings.instance_of(run), run.memory.mapping
        if instance is not None and instance.host and mapping is not None:
            guests.require_host(run, instance.host)
            _disconnect(run, self.name, instance.host, instance, mapping)


class DisconnectVolume(Step[Detach]):
    """Detaches the volume from the guest. Waits for a host that is down, because its guest may start again with the volume."""

    name = "DisconnectVolume"
    reads = frozenset({"resource_id"})
    writes = frozenset({"is_kept", "mapping", "reserved"})

    def where(self, run: Detach) -> str | None:
        return device_endings.host_of(run)

    def do(self, run: Detach) -> None:
        device_endings.begin(run)
        instance = device_endings.instance_of(run)
        run.memory.mapping = mapping = next(
            (each for each in run.devices() if each.volume_id == run.memory.resource_id), None
        )
        if instance is not None:
            run.memory.reserved = device_records.kept_for_revert(run.services, instance, run.memory.resource_id)
        if instance is None or mapping is None or not instance.host:
            return
        with device_endings.detach_order(run, instance.host):
            _disconnect(run, self.name, instance.host, instance, mapping)


class ReleaseVolume(Step[Detach]):
    """Releases the volume, and its reservation for a revert. The user may attach it to another server at once."""

    name = "ReleaseVolume"
    reads = frozenset({"is_kept", "mapping", "reserved", "resource_id"})

    def do(self, run: Detach) -> None:
        mapping, reserved = run.memory.mapping, run.memory.reserved
        if run.memory.is_kept:
            return
        if reserved is not None:
            run.services.volumes.delete_attachment(run.context, reserved.attachment_id)
            run.with_next_save(lambda connection: reservations.end_in(connection, reserved.move_id, reserved.volume_id))
        if mapping is None:
            # The volume was deleted with the server.
            device_records.release_reservations(run.services, run.context, run.uuid, run.memory.resource_id, set())
            device_endings.ended(run)
            return
        if mapping.attachment_id is not None:
            device_records.release_volume(
                run.services, run.context, run.uuid, run.memory.resource_id, mapping.attachment_id
            )
        with run.database.write() as connection:
            block_devices.delete_in(connection, mapping.uuid)
            run.write_history(connection)


def _disconnect(run: Attach | Detach, step: str, host: str, instance: Instance, mapping: BlockDevice) -> None:
    run.computes.disconnect_volume(run.context, host, token=run.token(step), instance=instance, block_device=mapping)


def _undo_late(run: Attach) -> None:
    """Undoes what a lost conductor did too late. If the user has requested the same volume again, only what this run reserved."""
    run.refresh()
    is_asked_anew = device_endings.is_asked_anew(run)
    if not is_asked_anew:
        ConnectVolume().undo(run)
    if not is_asked_anew or run.memory.mapping is not None:
        ReserveVolume().undo(run)


ATTACH_VOLUME = Recipe(
    operations.ATTACH_VOLUME,
    (ReserveVolume(), ConnectVolume()),
    pivot="ConnectVolume",
    rolled_back=device_endings.rolled_back,
    undo_late=_undo_late,
    attended=True,
    memory=AttachMemory,
)

# A detach begins behind its pivot, so it only goes forward.
DETACH_VOLUME = Recipe(
    operations.DETACH_VOLUME,
    (DisconnectVolume(), ReleaseVolume()),
    pivot="DisconnectVolume",
    rolled_back=device_endings.rolled_back,
    memory=DetachMemory,
)
