"""The last steps of a live migration: the guest runs at its target, and everything else follows it. They only go forward.

To another cell, the server is switched only when its guest has arrived. So this switch is behind the pivot, and is repeated until
it succeeds. There is no VERIFY_RESIZE.
"""

from __future__ import annotations

import dataclasses

from causeway import errors
from causeway.devices import device_records
from causeway.hosts import groups
from causeway.model.block_device import BlockDevice, is_volume_backed, local_disk_names
from causeway.model.instance import Instance
from causeway.model.missed import Missed
from causeway.model.things import Thing
from causeway.moves import events
from causeway.moves.dead_hosts import answering
from causeway.moves.dead_hosts import at_target as life_at_target
from causeway.moves.hardware import with_new
from causeway.moves.move_run import Run
from causeway.moves.notices import notified
from causeway.moves.port_resources import plugged_at_source
from causeway.moves.recipe import Step
from causeway.moves.sides import life_of, send_or_note, source_of, target_of
from causeway.moves.steps.check import is_deleting, require_whole_target_again
from causeway.moves.steps.confirm import ReleaseSource, release_source
from causeway.moves.steps.live_prepare import OF_THE_TARGET, at_target, devices_at_source, devices_at_target, run_queued
from causeway.moves.steps.near_live import EndNearLiveMigration
from causeway.moves.steps.records import SwitchInstanceMapping
from causeway.sagas.journal import Write
from causeway.servers.unplugged import warn_of_unplugged
from causeway.store.api import mappings
from causeway.store.cell import instances


class SwitchBehindPivot(SwitchInstanceMapping):
    """Switches the server to the target cell, where its guest runs already."""

    # The hypervisors copy the disks with the guest.
    reads_if_any = frozenset({"disks", "offer", "snapshot"})
    reads = SwitchInstanceMapping.reads - reads_if_any
    writes = frozenset({"is_switched"})

    def _is_done(self, run: Run) -> bool:
        return mappings.get(run.services.api, run.uuid).cell_uuid == run.memory.target_cell

    def _commit(self, run: Run, switch: Write) -> None:
        # If the answer to this write is lost, the changed value shows that the write took effect.
        run.memory.is_switched = True
        try:
            run.save(also=switch)
        except BaseException:
            run.memory.is_switched = False
            raise


class ArriveAtTarget(Step):
    """Has the target take over the guest's ports and volumes, and records where the server is and the guest's state."""

    name = "ArriveAtTarget"
    reads = OF_THE_TARGET | {"live_devices"}
    writes = frozenset({"guest"})
    makes = frozenset({Thing.BINDING})

    def where(self, run: Run) -> str | None:
        return run.memory.target_host

    def do(self, run: Run) -> None:
        memory, host = run.memory, run.memory.target_host
        arrived = at_target(run, run.target_instance())
        devices = devices_at_target(run, run.target_devices())
        if not run.is_repeated:
            _notify_post(run, "start", run.target_instance(), devices)
        with (
            run.event("compute_post_live_migration_at_destination", host),
            notified(run, "live_migration_post_dest", host, arrived, block_devices=devices),
            answering(run, life_at_target),
        ):
            memory.guest = guest = run.target_computes.post_live_migration_at_destination(
                run.context, host, token=run.token(self.name), instance=arrived, block_devices=devices
            )
        warn_of_unplugged(run, host, guest)
        with run.target_database.write() as connection:
            device_records.save_connections_in(connection, guest)
            instances.update_in(
                connection,
                run.uuid,
                host=arrived.host,
                node=arrived.node,
                availability_zone=arrived.availability_zone,
                network_info=guest.network_info,
                power_state=guest.power_state,
                numa_topology=guest.numa_topology,
                pci_requests=with_new(arrived).pci_requests,
                pci_devices=guest.pci_devices,
            )


class ReleaseSourceLive(Step):
    """Deletes everything of the server at its source. A source that is down gets the order when it is up again."""

    name = "ReleaseSource"
    reads = ReleaseSource.reads | {"group", "source_plugs"}

    def where(self, run: Run) -> str | None:
        return run.memory.source_host

    def do(self, run: Run) -> None:
        if not is_deleting(run):
            _require_target(run)
        release_source(run, events.RELEASE_SOURCE_LIVE, lambda: self._clear(run))
        groups.release(run.services, run.memory.group, run.uuid)

    def _clear(self, run: Run) -> None:
        host, token = run.memory.source_host, run.token(self.name)
        # Inside a cell, the record has the target's ports already.
        recorded = run.source_instance()
        ports = plugged_at_source(run.memory, recorded)
        instance = dataclasses.replace(recorded, host=host, network_info=ports)
        devices = devices_at_source(run, run.source_devices())

        def delete_guest() -> None:
            run.source_computes.post_live_migration_at_source(
                run.context, host, token=token, instance=instance, block_devices=devices
            )

        send_or_note(run, source_of(run), Missed.DELETE_LIVE_SOURCE, instance, devices, token, delete_guest)


def _require_target(run: Run) -> None:
    """Looks at the server at its target before anything of it is destroyed at its source.

    Raises HostDown if the target can't be asked and has the server's disks, CopyNotUsable if the server is not whole there.
    """
    life = life_of(run, target_of(run))
    if life.is_up:
        try:
            require_whole_target_again(run, stashed=False)
        except errors.CopyNotUsable as failure:
            raise errors.CopyNotUsable(
                f"Server {run.uuid} is not whole at the target of its live migration: what its source has is not destroyed.",
                details=f"{failure.message} {failure.details}",
            ) from failure
        return
    devices = run.target_devices()
    if not is_volume_backed(devices) or local_disk_names(devices):
        raise errors.HostDown(
            "The host that the server is on is down. Its source keeps the server's disks meanwhile.",
            details=life.explained(),
        )


class EndLiveMigration(EndNearLiveMigration):
    """Sets the server's state to that of its guest, ends its task, and lets the next live migration from the source begin."""

    name = "EndLiveMigration"
    reads = EndNearLiveMigration.reads | {"source_host"}

    def do(self, run: Run) -> None:
        super().do(run)
        if not run.is_repeated and run.services.notifier.is_enabled:
            _notify_post(run, "end", instances.get(run.target_database, run.uuid), run.target_devices())
        run_queued(run)


def _notify_post(run: Run, phase: str, instance: Instance, devices: list[BlockDevice]) -> None:
    run.services.notifier.instance_action(
        run.context, instance, "live_migration_post", phase, host=run.memory.source_host, block_devices=devices
    )
