"""Builds servers: from a build request to a running guest."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import msgspec

from causeway import errors
from causeway.clients import port_requests
from causeway.devices import device_records, half_reserved, making, releasing
from causeway.devices.port_devices import at_host
from causeway.hardware.requests import asked_of
from causeway.hosts import groups, liveness
from causeway.model import operations
from causeway.model.block_device import BlockDevice
from causeway.model.host_failures import may_be_of_host
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import DELETING, TaskState, VmState
from causeway.model.things import Thing
from causeway.operations import given_volumes
from causeway.operations.build_failed import TASKS, claim, release, rolled_back, undo_guest, undo_late
from causeway.operations.build_run import BuildMemory, BuildRun
from causeway.requests import checked
from causeway.running.patience import ServerStep, While
from causeway.sagas.recipe import Recipe, Step
from causeway.scheduler.request import RequestSpec, Selection
from causeway.servers import endings, tpm_keys
from causeway.store.api import build_requests, group_claims, mappings
from causeway.store.cell import block_devices, copies, instances
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)

# A host that says this has nothing of the server. After any other error it may have the guest, or a part.
_UNDONE = (errors.ClaimRefused, errors.GuestFailed, errors.HostDown)


class ChooseHost(ServerStep[BuildRun]):
    """Has the scheduler choose a host and alternates; claims the first one that the server's group allows."""

    name = "ChooseHost"
    writes = frozenset({"group", "networks", "numa_topology", "pci_requests", "targets"})
    makes = frozenset({Thing.ALLOCATION})

    def retried_while(self, run: BuildRun) -> While:  # noqa: ARG002
        return While.HOSTS_ARE_SILENT

    def do(self, run: BuildRun) -> None:
        services, memory, request = run.services, run.memory, run.request()
        if run.is_repeated:
            # Releases the claim of an earlier choice that was not recorded.
            _release_claims(run)
        memory.networks = request.requested_networks
        spec = _spec(run)
        asked = list(run.ports_that_ask().values())
        spec.requested_resources = port_requests.all_groups(asked)
        spec.same_subtree = port_requests.subtrees(asked)
        spec.order = run.order()
        result = services.scheduler.select_destinations(
            run.context, spec=spec, instance_uuids=[run.uuid], alternates=True
        )[0]
        memory.group = spec.server_group
        memory.numa_topology, memory.pci_requests = spec.numa_topology, spec.pci_requests
        memory.targets = self._that_its_group_allows(run, [result.selected, *result.alternates])

    def _that_its_group_allows(self, run: BuildRun, targets: list[Selection]) -> list[Selection]:
        """Claims the first target that the server's group allows; returns it and those after it."""
        last: errors.ClaimRefused | None = None
        for place, target in enumerate(targets):
            try:
                if place:
                    claim(run.services, run.instance(), target)
                groups.claim_host(run.services, run.memory.group, run.uuid, target.host)
            except errors.ClaimRefused as refusal:
                LOG.info("Host %s can't take server %s: %s", target.host, run.uuid, refusal.message)
                last = refusal
            else:
                return targets[place:]
        if last is None:
            raise errors.NoValidHost("No valid host was found.")
        raise errors.NoValidHost(f"No valid host was found. {last.message}", details=last.details)

    def undo(self, run: BuildRun) -> None:
        release(run, partial(_release_claims, run))


class PlaceInCell(Step[BuildRun]):
    """Writes the server into the cell of its host, and deletes its build request.

    A user may change the server between the two: then it is written again.
    """

    name = "PlaceInCell"
    reads = frozenset({"at", "group", "numa_topology", "pci_requests", "targets"})

    def do(self, run: BuildRun) -> None:
        while run.asked().cell_uuid is None:
            try:
                self._place(run, run.target.cell_uuid)
            except errors.RequestChanged as change:
                LOG.info("%s It is written again.", change.message)
                run.read_again()
            else:
                run.is_in(run.target.cell_uuid)
                break
        groups.release(run.services, run.memory.group, run.uuid)

    def _place(self, run: BuildRun, cell_uuid: str) -> None:
        """Raises RequestChanged, and StateChanged if the user has deleted the server."""
        memory, instance, present = run.memory, run.instance(), run.devices()
        device_records.name_devices(present)
        instance.host, instance.node = run.target.host, run.target.hypervisor_hostname
        instance.availability_zone = run.target.availability_zone
        instance.numa_topology, instance.pci_requests = memory.numa_topology, memory.pci_requests
        instance.task_state = TaskState.SPAWNING
        bundle = copies.Bundle(instance, present, [run.action()], [])
        try:
            copies.insert(run.services.cells.database(cell_uuid), bundle)
        except errors.StateChanged:
            # An earlier attempt, whose conductor died here or whose content was changed, may have written records.
            copies.write(run.services.cells.database(cell_uuid), bundle)
        self._map(run, cell_uuid)

    def _map(self, run: BuildRun, cell_uuid: str) -> None:
        """Maps the server to its cell. Raises RequestChanged, and StateChanged if its user has deleted it."""
        asked = run.asked()
        with run.services.api.write() as connection:
            if not build_requests.delete_as_read_in(connection, run.uuid, asked):
                raise errors.StateChanged(f"Server {run.uuid} was deleted before it was built.")
            mappings.set_cell_in(connection, run.uuid, cell_uuid, expected=None)
            if _to_keep(asked.spec) != asked.spec:
                # Later moves must not use the parts of the request that are for this build only.
                mappings.change_spec_in(connection, run.uuid, _to_keep)

    def undo(self, run: BuildRun) -> None:
        """Deletes the records in the cell, unless the server is mapped to it: then it stays there, in ERROR."""
        found, cell_uuid = build_requests.asked(run.services.api, run.uuid), run.target.cell_uuid
        if found is None or found.cell_uuid is None:
            copies.hard_delete(run.services.cells.database(cell_uuid), run.uuid)


class MakeDevices(ServerStep[BuildRun]):
    """Makes ports (not bound yet), makes and reserves volumes. Undone, it keeps volumes that a user gave to the server."""

    name = "MakeDevices"
    reads = frozenset({"at", "networks", "targets"})
    writes = frozenset({"ports"})
    makes = frozenset({Thing.ATTACHMENT, Thing.PORT, Thing.VOLUME})

    def retried_while(self, run: BuildRun) -> While:  # noqa: ARG002
        return While.DEVICES_ARE_MADE

    def do(self, run: BuildRun) -> None:
        instance, present, again = run.instance(), run.devices(), run.is_repeated
        if not again:
            run.services.notifier.instance_action(run.context, instance, "create", "start", host=run.target.host)
        instance.network_info = []
        for wanted in run.memory.networks:
            instance.network_info.append(
                making.make_first_port(run.services, run.context, instance, wanted, again=again)
            )
        volumes = [device for device in present if device.is_volume]
        in_doubt = again and half_reserved.is_in_doubt(run)
        for device in volumes:
            making.make_volume(run.services, run.context, instance, device, again=again, in_doubt=in_doubt)
            # Asks for the lease again: the process may have been suspended while it made the volume.
            making.reserve_first_volume(run.services, run.context, instance, device)
        run.memory.ports = instance.network_info
        has_key = tpm_keys.make(run.services, run.context, instance)
        if volumes or has_key:
            self._save(run, volumes)

    def _save(self, run: BuildRun, volumes: list[BlockDevice]) -> None:
        """Records what was made, unless another conductor has built the server meanwhile."""
        run.check_lease()
        with run.database.write() as connection:
            instances.swap_in(
                connection,
                run.uuid,
                expected_task=TASKS | DELETING,
                network_info=run.instance().network_info,
                system_metadata=run.instance().system_metadata,
            )
            for device in volumes:
                block_devices.update_in(
                    connection, device.uuid, volume_id=device.volume_id, attachment_id=device.attachment_id
                )

    def undo(self, run: BuildRun) -> None:
        release(run, partial(self._release, run))

    def _release(self, run: BuildRun) -> None:
        present = run.devices()
        tpm_keys.delete(run.services, run.context, run.instance())
        made = [device for device in present if not given_volumes.is_given(device)]
        releasing.release(run.services, run.context, run.instance(), made, kept=given_volumes.given(present))
        volumes = [device for device in made if device.is_volume]
        if volumes and run.asked().cell_uuid is not None:
            with run.database.write() as connection:
                for device in volumes:
                    # It is deleted by now, or the user's own.
                    block_devices.update_in(
                        connection, device.uuid, volume_id=None, attachment_id=None, connection_info=None
                    )


class SpawnGuest(ServerStep[BuildRun]):
    """Has the host make the guest; if it can't, asks the alternates one after the other."""

    name = "SpawnGuest"
    reads = frozenset({"group", "networks", "pci_requests", "ports", "targets"})
    writes = frozenset({"at", "guest"})
    makes = frozenset({Thing.ALLOCATION, Thing.DISKS, Thing.GUEST})

    def retried_while(self, run: BuildRun) -> While:  # noqa: ARG002
        return While.OTHER_HOSTS_ARE_LEFT

    def where(self, run: BuildRun) -> str | None:
        return run.target.host

    def do(self, run: BuildRun) -> None:
        checked.require_image(run.services, run.context, run.instance().image_ref)
        if run.is_repeated:
            self._begin_again(run)
        elif any(device.is_volume for device in run.devices()):
            # Making the volumes may have taken long: look at the server again.
            run.check_wanted()
        memory = run.memory
        failure: errors.CausewayError = errors.NoValidHost("No valid host was found.")
        first = memory.at
        for place in range(first, len(memory.targets)):
            # Of all hosts, an earlier attempt can only have asked the one that the record names.
            again = run.is_repeated and place == first
            if place > first:
                run.check_wanted()
                try:
                    self._turn_to(run, place)
                except errors.ClaimRefused:
                    continue
            self._set_port_allocations(run)
            try:
                memory.guest = self._ask_host(run, again=again)
                return
            except errors.CausewayError as refusal:
                if not may_be_of_host(refusal):
                    raise
                LOG.warning("Host %s could not build server %s: %s", run.target.host, run.uuid, refusal.message)
                failure = refusal
                if again or not isinstance(refusal, _UNDONE):
                    undo_guest(run.services, run, run.target)
        raise failure

    def _ask_host(self, run: BuildRun, *, again: bool) -> GuestOutcome:
        """Has the host make the guest. ``again``: it may have it, or be making it. Raises the host's error."""
        with run.event(run.kind.event, run.target.host):
            self._require_up_if_repeated(run)
            return run.computes.build_guest(
                run.context,
                run.target.host,
                token=run.token(self.name),
                instance=run.instance(),
                block_devices=run.devices(),
                again=again,
            )

    def _begin_again(self, run: BuildRun) -> None:
        """Claims again the host that was asked last, which the record names: it may have the guest, or be making it."""
        memory, host = run.memory, run.instance().host
        memory.at = next((place for place, target in enumerate(memory.targets) if target.host == host), memory.at)
        claim(run.services, run.instance(), run.target)

    def _require_up_if_repeated(self, run: BuildRun) -> None:
        """Raises HostDown if an earlier attempt asked the host and it no longer reports."""
        if run.is_repeated:
            life = liveness.of_host(run.services, run.database, run.target.host)
            if not life.is_up:
                raise errors.HostDown("The chosen host no longer reports.", details=life.explained())

    def _turn_to(self, run: BuildRun, place: int) -> None:
        """Claims an alternate to make the guest. Raises ClaimRefused."""
        target, instance = run.memory.targets[place], run.instance()
        claim(run.services, run.instance(), target)
        groups.claim_host(run.services, run.memory.group, run.uuid, target.host)
        instance.host, instance.node = target.host, target.hypervisor_hostname
        instance.availability_zone = target.availability_zone
        run.memory.at = place
        instances.update(
            run.database,
            run.uuid,
            host=instance.host,
            node=instance.node,
            availability_zone=instance.availability_zone,
        )
        groups.release(run.services, run.memory.group, run.uuid)

    def _set_port_allocations(self, run: BuildRun) -> None:
        asked = run.ports_that_ask()
        instance, mappings = run.instance(), run.target.allocation_request.mappings
        instance.pci_requests = at_host(run.services, run.memory.pci_requests, asked.values(), mappings)
        for vif in instance.network_info if asked else ():
            vif.profile = port_requests.with_allocation(vif.profile, asked.get(vif.id), mappings)

    def undo(self, run: BuildRun) -> None:
        undo_guest(run.services, run, run.target)


class EndBuild(Step[BuildRun]):
    """Sets the server to ACTIVE."""

    name = "EndBuild"
    reads = frozenset({"guest", "ports"})
    pivots = True

    def do(self, run: BuildRun) -> None:
        guest, there = run.memory.guest, run.instance()
        if guest is None:
            raise RuntimeError("the guest was not made")
        if endings.came_up(run, TASKS, guest, there, vm_state=VmState.ACTIVE):
            run.services.notifier.instance_action(run.context, there, "create", "end", host=there.host or "")
            return
        record = instances.find(run.database, run.uuid, with_tags=False)
        if record is not None and record.launched_at is None:
            # An administrator has reset the server's states meanwhile, but the server has its guest.
            instances.update(
                run.database,
                run.uuid,
                network_info=guest.network_info,
                numa_topology=guest.numa_topology,
                pci_devices=guest.pci_devices,
                launched_at=utcnow(),
            )


def _spec(run: BuildRun) -> RequestSpec:
    """Returns the request spec, with the parts that were requested for this build only."""
    stored = run.asked().spec
    spec = RequestSpec.from_persisted(stored)
    once = {name: stored[name] for name in ("force_hosts", "requested_destination") if stored.get(name)}
    if once:
        spec = msgspec.convert(msgspec.to_builtins(spec) | once, RequestSpec)
    asked = asked_of(run.services.conf, spec.flavor, spec.image, run.devices_of_ports())
    spec.numa_topology, spec.pci_requests = asked.numa_topology, asked.pci_requests
    spec.is_new = True
    return spec


def _to_keep(spec: dict[str, Any]) -> dict[str, Any]:
    """The request spec without the parts that are for the build only."""
    return RequestSpec.from_persisted(spec).to_persist()


def _release_claims(run: BuildRun) -> None:
    group_claims.release(run.services.api, run.uuid)
    run.services.placement.delete_allocations(run.uuid)


BUILD = Recipe(
    operations.BUILD,
    (ChooseHost(), PlaceInCell(), MakeDevices().joining("PlaceInCell"), SpawnGuest(), EndBuild()),
    pivot="EndBuild",
    rolled_back=rolled_back,
    undo_late=undo_late,
    # 2: steps begin together (`causeway.sagas.progress`).
    version=2,
    continues=frozenset({1}),
    memory=BuildMemory,
)
