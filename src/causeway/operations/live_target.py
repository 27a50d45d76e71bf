"""The first steps of a live migration: they choose a target, ask it, and prepare it. The guest notices nothing."""

from __future__ import annotations

import dataclasses
import logging
from contextlib import suppress

from causeway import errors
from causeway.hardware.port_devices import requests_of
from causeway.hardware.requests import asked_of
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance, MigrationContext
from causeway.model.missed import Missed
from causeway.model.network import Vif
from causeway.model.things import Thing
from causeway.operations.live_run import Run, devices_there, notified, notify, pair, target_host, there
from causeway.operations.places import place_of
from causeway.parts import cleanups, groups, liveness, placing
from causeway.parts.live_transfer import Side, failure_of, send_or_note
from causeway.parts.live_volumes import attach_at_target, delete_orphaned_attachments
from causeway.rpc.compute.live import LiveCheck
from causeway.sagas.recipe import Step
from causeway.scheduler.request import MoveClaim, RequestSpec
from causeway.store.api import mappings, migrations
from causeway.store.cell import hosts, instances

LOG = logging.getLogger(__name__)

# Errors of the chosen host after which another host may succeed.
_OF_THE_HOST = (
    errors.ClaimRefused,
    errors.GuestFailed,
    errors.RpcTimeout,
    errors.UnexpectedFailure,
)


class ChooseTarget(Step[Run]):
    """Claims a host of the server's cell and asks it. Releases a host that refuses, and tries the next one."""

    name = "ChooseTarget"
    reads = frozenset(
        {"block_migration", "disk_over_commit", "event", "forced", "source_host", "source_node", "wanted_host"}
    )
    writes = frozenset({"connector", "group", "place", "refused", "source"})
    makes = frozenset({Thing.ALLOCATION, Thing.CLAIM})

    def do(self, run: Run) -> None:
        services, memory = run.services, run.memory
        if run.instance().host != memory.source_host:
            raise errors.InvalidState(f"Server {run.uuid} has left host {memory.source_host}.")
        with run.event(memory.event):
            self._require_source(run)
            if asking(run).pci_requests:
                raise errors.NoValidHost(
                    f"Server {run.uuid} has PCI devices, which can't be taken along while it runs."
                )
            memory.group = RequestSpec.from_persisted(mappings.get_spec(services.api, run.uuid)).server_group
            with run.event("compute_check_can_live_migrate_source", memory.source_host):
                memory.source = run.computes.check_can_live_migrate_source(
                    run.context,
                    memory.source_host,
                    instance=run.instance(),
                    block_devices=run.devices(),
                    block_migration=memory.block_migration,
                )
                memory.source.disk_over_commit = memory.disk_over_commit
            context = self._agree(run)
        context.source_host, context.source_cell = memory.source_host, run.cell.uuid
        context.dest_cell = run.cell.uuid
        context.old_numa_topology = run.instance().numa_topology
        instances.update(run.database, run.uuid, migration_context=context)

    def _require_source(self, run: Run) -> None:
        life = liveness.of_host(run.services, run.database, run.memory.source_host)
        if not life.is_up:
            raise errors.OperationFailed(
                "Compute service of the server's host is unavailable.", details=life.explained()
            )

    def _agree(self, run: Run) -> MigrationContext:
        """Asks one host after the other until one accepts."""
        memory = run.memory
        if memory.place is None and run.is_repeated:
            # Releases the claim of a call whose answer was lost: it would prevent the same choice.
            self._return_allocations(run)
        while True:
            if memory.place is None:
                self._choose(run)
            host = target_host(run)
            try:
                with run.event("compute_check_can_live_migrate_destination", host):
                    groups.claim_host(run.services, memory.group, run.uuid, host)
                    checked = self._ask(run, host)
            except _OF_THE_HOST as refusal:
                if isinstance(refusal, errors.RpcTimeout) and not run.is_repeated:
                    # If only the answer was lost, the host still has the claim.
                    raise
                self._turn_away(run, host, refusal)
                continue
            memory.connector = checked.connector
            return checked.context

    def _choose(self, run: Run) -> None:
        services, memory, migration = run.services, run.memory, run.saga.migration_uuid
        chosen = placing.choose(
            services,
            run.context,
            run.instance(),
            run.cell.uuid,
            order=run.order,
            host=memory.wanted_host,
            forced=memory.forced,
            move=MoveClaim(migration, memory.source_node),
            ignore=memory.refused,
        )
        memory.place = place_of(chosen.instance)
        selection = chosen.selection
        source_node = next(iter(hosts.list_nodes(run.database, host=memory.source_host)), None)
        run.save(
            also=lambda connection: migrations.update_in(
                connection,
                migration,
                source_node=source_node.hypervisor_hostname if source_node is not None else None,
                dest_compute=selection.host,
                dest_node=selection.hypervisor_hostname,
            )
        )

    def _ask(self, run: Run, host: str) -> LiveCheck:
        life = liveness.of_host(run.services, run.database, host)
        if not life.is_up:
            raise errors.ClaimRefused("The chosen host is down.", details=life.explained())
        if run.memory.source is None:
            raise RuntimeError("the source was not asked")
        return run.computes.check_can_live_migrate_destination(
            run.context,
            host,
            token=run.token(self.name),
            instance=asking(run),
            block_devices=run.devices(),
            source=run.memory.source,
        )

    def _turn_away(self, run: Run, host: str, refusal: errors.CausewayError) -> None:
        """Releases a host that refused. Raises NoValidHost if no other host may be tried."""
        memory, retries = run.memory, run.unguarded.conf.conductor.migrate_max_retries
        LOG.info("Live migration %s: host %s refused: %s %s", run.saga.id, host, refusal.message, refusal.details)
        memory.refused.append(host)
        memory.place = None
        run.save()
        self._release_claim(run, host)
        groups.release(run.services, memory.group, run.uuid)
        self._return_allocations(run)
        run.refresh()
        # As in the field, the first host does not count.
        is_last = memory.wanted_host is not None or 0 <= retries < len(memory.refused)
        if is_last:
            raise errors.NoValidHost(
                f"No valid host was found. {refusal.message}", details=refusal.details
            ) from refusal

    def _return_allocations(self, run: Run) -> None:
        run.services.placement.return_allocations(
            run.uuid, run.saga.migration_uuid, source_provider=run.memory.source_node
        )

    def _release_claim(self, run: Run, host: str) -> None:
        instance = run.instance()
        if not asked_of(run.services.conf, instance.flavor, instance.image_meta, requests_of(instance)):
            return
        token = run.token(self.name)
        if liveness.of_host(run.services, run.database, host).is_up:
            with suppress(errors.RpcTimeout):
                run.computes.drop_move_claim(run.context, host, token=token, instance_uuid=run.uuid)
                return
        cleanups.note(run.services, host, run.cell.uuid, Missed.RELEASE_CLAIM, run.instance(), [], token)

    def undo(self, run: Run) -> None:
        memory = run.memory
        self._return_allocations(run)
        if memory.place is not None:
            self._release_claim(run, memory.place.host)
        groups.release(run.services, memory.group, run.uuid)
        instances.update(run.database, run.uuid, migration_context=None)


def asking(run: Run) -> Instance:
    """The server with the requests of its flavor and ports, as a host checks them."""
    instance = run.instance()
    asked = asked_of(run.services.conf, instance.flavor, instance.image_meta, requests_of(instance))
    return dataclasses.replace(
        instance, numa_topology=asked.numa_topology, pci_requests=asked.pci_requests, pci_devices=[]
    )


class PrepareTarget(Step[Run]):
    """Makes inactive port bindings and volume attachments for the target, and has the target prepare for the guest."""

    name = "PrepareTarget"
    reads = frozenset({"connector", "place", "source", "source_host"})
    writes = frozenset({"attachments", "devices", "target"})
    makes = frozenset({Thing.ATTACHMENT, Thing.BINDING, Thing.DISKS})

    def where(self, run: Run) -> str | None:
        return run.memory.place.host if run.memory.place is not None else None

    def do(self, run: Run) -> None:
        memory, host = run.memory, target_host(run)
        if memory.source is None:
            raise RuntimeError("the source was not asked")
        self._bind(run, host)
        if run.is_repeated:
            delete_orphaned_attachments(run, run.devices())
        memory.devices = [self._attach(run, device) for device in run.devices() if device.is_volume]
        with run.event("compute_pre_live_migration", host), notified(run, "pre", host):
            try:
                memory.target = run.computes.pre_live_migration(
                    run.context,
                    host,
                    token=run.token(self.name),
                    instance=there(run),
                    block_devices=devices_there(run),
                    source=memory.source,
                )
            except errors.GuestFailed as failure:
                raise failure_of(failure, run.uuid) from failure

    def _bind(self, run: Run, host: str) -> None:
        ports: list[Vif] = there(run).network_info
        for vif in ports:
            # A port that its user deleted meanwhile does not stop the migration.
            with suppress(errors.PortNotFound):
                run.services.network.create_binding(run.context, vif.id, host, vif.vnic_type, vif.profile)

    def _attach(self, run: Run, device: BlockDevice) -> BlockDevice:
        """The device as the target has it; the source keeps its own attachment."""
        if device.volume_id is None:
            return device
        known = pair(run, device.volume_id)
        known.source = device.attachment_id

        def note(attachment_id: str) -> None:
            known.target = attachment_id
            run.save()

        return attach_at_target(run, device, device.volume_id, known.target, run.memory.connector, note)

    def undo(self, run: Run) -> None:
        memory, host, instance = run.memory, target_host(run), run.instance()
        notify(run, "rollback", "start", memory.source_host)
        self._clear_target(run, host)
        for vif in instance.network_info:
            run.services.network.delete_binding(run.context, vif.id, host)
        for known in memory.attachments:
            if known.target is not None:
                run.services.volumes.delete_attachment(run.context, known.target)
                known.target = None
        delete_orphaned_attachments(run, run.devices())
        notify(run, "rollback", "end", memory.source_host)

    def _clear_target(self, run: Run, host: str) -> None:
        token = run.token(self.name)

        def clear() -> None:
            with notified(run, "rollback_dest", host):
                run.computes.rollback_live_migration_at_destination(
                    run.context, host, token=token, instance=there(run), block_devices=devices_there(run)
                )

        # A host that is down may have a copy of the guest. Nothing resumes that copy; the host deletes it when it is up again.
        side = Side(host, run.cell.uuid, run.database, run.computes)
        send_or_note(run, side, Missed.UNDO_LIVE, there(run), devices_there(run), token, clear)
