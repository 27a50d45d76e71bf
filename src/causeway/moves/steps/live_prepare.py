"""The steps of a live migration before its transfer: it waits for its turn, and the target makes itself ready.

The number of guests that leave a host at the same time is limited, inside a cell and across cells.
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress

from causeway import errors
from causeway.clients.network_api import Json
from causeway.clients.port_owners import PortOwner
from causeway.clients.rights import OF_SERVER
from causeway.context import admin_context
from causeway.devices.device_records import noted_by_operations
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.missed import Missed
from causeway.model.operation_kinds import recipes_where
from causeway.model.things import Thing
from causeway.moves.dead_hosts import answering
from causeway.moves.dead_hosts import at_target as life_at_target
from causeway.moves.move_run import Run
from causeway.moves.notices import notified
from causeway.moves.port_resources import note_source_plugs, note_target_plug, plugged_at_target
from causeway.moves.recipe import Step
from causeway.moves.sides import send_or_note, target_of
from causeway.moves.steps.reservations import volumes
from causeway.requests.of_servers import context_of, notify_conductor
from causeway.running.patience import While
from causeway.store.api import journal, live_turns, migrations

_WAIT_HERE = recipes_where(lambda kind: kind.is_by_hypervisors)

# The fields of memory that `at_target` reads.
OF_THE_TARGET = frozenset({"port_requests", "selection", "source_cell", "source_host", "target_plugs"})


class AwaitTurn(Step):
    """Waits until the source may send another guest. Meanwhile the saga is released."""

    name = "AwaitTurn"
    reads = frozenset({"source_host"})

    def retried_while(self, run: Run) -> While:  # noqa: ARG002
        return While.OTHERS_HAVE_THEIR_TURN

    def do(self, run: Run) -> None:
        limit: int = run.services.conf.max_concurrent_live_migrations
        migration = migrations.get(run.services.api, run.move.migration_uuid)
        if not live_turns.take(run.services.api, migration, limit):
            raise errors.OperationUnderWay(
                f"The live migration of server {run.uuid} waits until others have left its host.",
                details=f"host {run.memory.source_host}, max_concurrent_live_migrations {limit}",
            )


def run_queued(run: Run) -> None:
    """Starts the next live migration in the queue of the source, which has room for it."""
    api = run.services.api
    for migration in live_turns.queued(api, run.memory.source_host):
        for operation in journal.of_migration(api, migration.uuid):
            if operation.recipe in _WAIT_HERE and operation.owner is None:
                notify_conductor(run.services, context_of(operation), operation)
                return


class PrepareTarget(Step):
    """Attaches the volumes to the target, binds the ports, and has the target prepare for the guest and listen for it.

    The ports of a server that leaves its cell are bound before.
    """

    name = "PrepareTarget"
    reads = OF_THE_TARGET | {"connector", "live_source"}
    writes = frozenset({"attachments", "live_devices", "live_target", "port_ids", "source_plugs", "target_plugs"})
    makes = frozenset({Thing.ATTACHMENT, Thing.BINDING, Thing.DISKS})

    def where(self, run: Run) -> str | None:
        return run.memory.target_host

    def do(self, run: Run) -> None:
        memory, host = run.memory, run.memory.target_host
        if memory.live_source is None:
            raise RuntimeError("the source was not asked")
        note_source_plugs(memory, run.source_instance().network_info)
        self._bind(run)
        run.services.network.announce_migration(run.context, _ports(run), host)
        if run.is_repeated:
            _delete_orphaned_attachments(run)
        memory.live_devices = [self._attach(run, device, id) for device, id in volumes(run.source_devices())]
        with (
            run.event("compute_pre_live_migration", host),
            notified(run, "live_migration_pre", host, run.source_instance(), block_devices=run.source_devices()),
            answering(run, life_at_target),
        ):
            try:
                memory.live_target = run.target_computes.pre_live_migration(
                    run.context,
                    host,
                    token=run.token(self.name),
                    instance=at_target(run, run.source_instance()),
                    block_devices=devices_at_target(run, run.source_devices()),
                    source=memory.live_source,
                )
            except errors.GuestFailed as failure:
                raise failure_of(failure, run.uuid) from failure

    def _bind(self, run: Run) -> None:
        """Makes inactive bindings for the ports that have none at the target yet."""
        memory = run.memory
        for vif in at_target(run, run.source_instance()).network_info:
            if vif.id in memory.port_ids:
                continue
            # A port that its user deleted meanwhile does not stop the migration.
            with suppress(errors.PortNotFound):
                binding = run.services.network.create_binding(
                    run.context, vif.id, memory.target_host, vif.vnic_type, vif.profile
                )
                note_target_plug(memory, vif.id, binding)
            memory.port_ids.append(vif.id)

    def _attach(self, run: Run, device: BlockDevice, volume_id: str) -> BlockDevice:
        """Attaches a volume to the target. Returns the device with that attachment; the source keeps its own."""
        pair = run.memory.pair(volume_id)
        pair.source = device.attachment_id
        if pair.target is None:
            made = run.services.volumes.create_attachment(
                run.context, volume_id, run.uuid, run.memory.connector, device.device_name, called_as=OF_SERVER
            )
            pair.target = made.id
            run.save()
        else:
            made = run.services.volumes.get_attachment(run.context, pair.target)
        return dataclasses.replace(device, attachment_id=made.id, connection_info=made.connection_info)

    def undo(self, run: Run) -> None:
        memory, instance, devices = run.memory, run.source_instance(), run.source_devices()
        with notified(run, "live_migration_rollback", memory.source_host, instance, block_devices=devices):
            self._clear(run)
            # The bindings first: to Neutron's agents, an inactive binding too means that a guest is going there.
            for vif in instance.network_info:
                run.services.network.delete_binding(run.context, vif.id, memory.target_host)
            run.services.network.undo_announcement(run.context, _ports(run), memory.target_host)
            for pair in memory.attachments:
                if pair.target is not None:
                    run.services.volumes.delete_attachment(run.context, pair.target)
                    pair.target = None
            _delete_orphaned_attachments(run)

    def _clear(self, run: Run) -> None:
        """Has the target delete everything of the server.

        A target that is down may have a copy of the guest. Nothing resumes that copy; the host deletes it when it is up again.
        """
        host, token, instance, devices = (
            run.memory.target_host,
            run.token(self.name),
            at_target(run, run.source_instance()),
            devices_at_target(run, run.source_devices()),
        )

        def clear() -> None:
            with notified(
                run, "live_migration_rollback_dest", host, run.source_instance(), block_devices=run.source_devices()
            ):
                run.target_computes.rollback_live_migration_at_destination(
                    run.context, host, token=token, instance=instance, block_devices=devices
                )

        send_or_note(run, target_of(run), Missed.UNDO_LIVE, instance, devices, token, clear)


def _ports(run: Run) -> list[Json]:
    """The server's ports as the network service has them."""
    instance = run.source_instance()
    if not instance.network_info:
        return []
    return run.services.network.ports_of_server(run.context, PortOwner.of(instance))


def at_target(run: Run, instance: Instance) -> Instance:
    """Returns the server as it is at the target. ``instance``: its record in either cell."""
    destination = run.memory.destination
    return dataclasses.replace(
        instance,
        host=destination.host,
        node=destination.hypervisor_hostname,
        availability_zone=destination.availability_zone,
        network_info=plugged_at_target(run.memory, instance),
    )


def devices_at_target(run: Run, present: list[BlockDevice]) -> list[BlockDevice]:
    """Returns the server's block devices with the attachments that they have at the target. ``present``: as recorded."""
    there = {device.uuid: device for device in run.memory.live_devices}
    return [
        dataclasses.replace(
            device,
            attachment_id=there[device.uuid].attachment_id,
            connection_info=there[device.uuid].connection_info,
        )
        if device.uuid in there
        else device
        for device in present
    ]


def devices_at_source(run: Run, present: list[BlockDevice]) -> list[BlockDevice]:
    """Returns the server's block devices with the attachments that they have at the source. ``present``: as recorded."""
    there = {pair.volume_id: pair.source for pair in run.memory.attachments}
    return [
        dataclasses.replace(device, attachment_id=there.get(device.volume_id or ""), connection_info=None)
        if device.is_volume and device.attachment_id != there.get(device.volume_id or "")
        else device
        for device in present
    ]


def failure_of(cause: errors.CausewayError, uuid: str) -> errors.CausewayError:
    """The error of a live migration that the hypervisors did not carry out. It is not tried again."""
    if isinstance(cause, errors.Cancelled):
        return cause
    return errors.GuestStayed(f"The live migration of server {uuid} failed: {cause.message}", details=cause.details)


def _delete_orphaned_attachments(run: Run) -> None:
    """Deletes attachments that an earlier attempt made without recording their ids."""
    present = run.source_devices()
    if not any(device.is_volume for device in present):
        return
    known = {device.attachment_id for device in present}
    ours = admin_context(request_id=run.context.request_id)
    noted = noted_by_operations(run.services, run.uuid) | {pair.target for pair in run.memory.attachments}
    attached = {device.volume_id for device in present if device.is_volume}
    for found in run.services.volumes.attachments_of_server(run.context, run.uuid):
        # Whoever has a volume may attach it in the name of any server.
        if found.volume_id in attached and found.id not in known | noted:
            run.services.volumes.delete_attachment(ours, found.id)
