"""The last steps of a live migration: the guest runs at its target, and everything else follows it. They only go forward."""

from __future__ import annotations

import dataclasses
import logging
from contextlib import suppress

from causeway import errors
from causeway.model.block_device import is_volume_backed, local_disk_names
from causeway.model.missed import Missed
from causeway.model.states import MigrationStatus, TaskState
from causeway.model.things import Thing
from causeway.operations import endings
from causeway.operations.live_run import TASKS, Run, devices_there, notified, notify, target_host, there
from causeway.parts import devices, groups
from causeway.parts.live_queue import run_queued
from causeway.parts.live_transfer import Side, life_of, send_or_note
from causeway.sagas.recipe import Step
from causeway.store.api import migrations
from causeway.store.cell import instances

LOG = logging.getLogger(__name__)


class ArriveAtTarget(Step[Run]):
    """Has the target take over ports and volumes, and records where the server is from now on."""

    name = "ArriveAtTarget"
    reads = frozenset({"devices", "place", "source_host"})
    writes = frozenset({"guest"})
    makes = frozenset({Thing.BINDING})

    def where(self, run: Run) -> str | None:
        return target_host(run)

    def do(self, run: Run) -> None:
        memory, host, arrived = run.memory, target_host(run), there(run)
        if not run.is_repeated:
            notify(run, "post", "start", memory.source_host)
        with (
            run.event("compute_post_live_migration_at_destination", host),
            notified(run, "post_dest", host, arrived),
        ):
            memory.guest = guest = run.computes.post_live_migration_at_destination(
                run.context, host, token=run.token(self.name), instance=arrived, block_devices=devices_there(run)
            )
        with run.database.write() as connection:
            devices.save_connections_in(connection, guest)
            instances.update_in(
                connection,
                run.uuid,
                host=arrived.host,
                node=arrived.node,
                availability_zone=arrived.availability_zone,
                network_info=guest.network_info,
                power_state=guest.power_state,
                numa_topology=guest.numa_topology,
                pci_devices=guest.pci_devices,
            )


class ReleaseSource(Step[Run]):
    """Deletes everything of the server at its source. If the source is down, the order is noted and sent when it is up again."""

    name = "ReleaseSource"
    reads = frozenset({"attachments", "group", "place", "source_host"})

    def where(self, run: Run) -> str | None:
        return run.memory.source_host

    def do(self, run: Run) -> None:
        memory, services = run.memory, run.services
        _show_target(run)
        self._clear_source(run)
        for vif in run.instance().network_info:
            services.network.delete_binding(run.context, vif.id, memory.source_host)
        for known in memory.attachments:
            if known.source is not None and known.source != known.target:
                services.volumes.delete_attachment(run.context, known.source)
        services.placement.release_migration(run.saga.migration_uuid)
        groups.release(services, memory.group, run.uuid)

    def _clear_source(self, run: Run) -> None:
        host, token = run.memory.source_host, run.token(self.name)
        instance = dataclasses.replace(run.instance(), host=host)
        sources = {each.volume_id: each.source for each in run.memory.attachments}
        present = [
            dataclasses.replace(device, attachment_id=sources.get(device.volume_id or ""), connection_info=None)
            if device.is_volume
            else device
            for device in run.devices()
        ]

        def clear() -> None:
            run.computes.post_live_migration_at_source(
                run.context, host, token=token, instance=instance, block_devices=present
            )

        side = Side(host, run.cell.uuid, run.database, run.computes)
        send_or_note(run, side, Missed.DELETE_LIVE_SOURCE, instance, present, token, clear)


def _show_target(run: Run) -> None:
    """Looks at the server at its target before anything of it is destroyed at its source.

    Raises HostDown if the target can't be asked and has the server's disks, CopyNotUsable if the server is not there.
    """
    source, target = (
        Side(host, run.cell.uuid, run.database, run.computes) for host in (run.memory.source_host, target_host(run))
    )
    life = life_of(run, target)
    if not life.is_up:
        devices = run.devices()
        if not is_volume_backed(devices) or local_disk_names(devices):
            raise errors.HostDown(
                "The host that the server is on is down. Its source keeps the server's disks meanwhile.",
                details=life.explained(),
            )
        return
    if run.instance().task_state is TaskState.DELETING or _is_at(run, target):
        return
    if life_of(run, source).is_up and not _is_at(run, source):
        LOG.warning("Live migration %s continues: its source no longer has anything of the server", run.saga.id)
        return
    raise errors.CopyNotUsable(
        f"Server {run.uuid} is not at the target of its live migration: what its source has is not destroyed.",
        details=f"target {target.host}, source {source.host}",
    )


def _is_at(run: Run, side: Side) -> bool:
    """Whether a host has a guest or disks of the server."""
    facts = side.computes.inspect_instance(run.context, side.host, instance_uuid=run.uuid)
    return facts.power_state is not None or facts.has_disks


class EndLiveMigration(Step[Run]):
    """Sets the migration to completed, and ends the server's task."""

    name = "EndLiveMigration"
    reads = frozenset({"source_host"})

    def do(self, run: Run) -> None:
        # The migration first: a client that sees the server without a task may start the next one.
        migrations.update(run.services.api, run.saga.migration_uuid, status=MigrationStatus.COMPLETED)
        if endings.ended(run, TASKS, migration_context=None, progress=0):
            ended = run.instance()
            ended.task_state = None
            notify(run, "post", "end", run.memory.source_host, ended)
        else:
            # This was done before, or an administrator has set other states.
            with suppress(errors.ServerNotFound):
                instances.update(run.database, run.uuid, migration_context=None, progress=0)
        run_queued(run)
