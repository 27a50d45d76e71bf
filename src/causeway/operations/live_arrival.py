"""The last steps of a live migration: the guest runs at its target, and everything else follows it. They only go forward."""

from __future__ import annotations

import dataclasses
from contextlib import suppress

from causeway import errors
from causeway.model.missed import Missed
from causeway.model.states import MigrationStatus
from causeway.model.things import Thing
from causeway.operations import endings
from causeway.operations.live_run import TASKS, Run, devices_there, notified, notify, target_host, there
from causeway.parts import devices, groups
from causeway.parts.live_queue import run_queued
from causeway.parts.live_transfer import Side, done_or_noted
from causeway.sagas.recipe import Step
from causeway.store.api import migrations
from causeway.store.cell import instances


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


class LeaveSource(Step[Run]):
    """Deletes everything of the server at its source. If the source is down, the order is noted and sent when it is up again."""

    name = "LeaveSource"
    reads = frozenset({"attachments", "group", "place", "source_host"})

    def where(self, run: Run) -> str | None:
        return run.memory.source_host

    def do(self, run: Run) -> None:
        memory, services = run.memory, run.services
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
        done_or_noted(run, side, Missed.DELETE_LIVE_SOURCE, instance, present, token, clear)


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
