"""Building servers: from a build request to a running guest."""

from __future__ import annotations

import logging

import msgspec

from causeway import errors
from causeway.clients import port_requests
from causeway.clients.port_requests import PortRequest
from causeway.conductor import failed_builds
from causeway.context import RequestContext
from causeway.hardware.requests import asked_of
from causeway.model.host import CELL0_UUID
from causeway.model.instance import Instance, InstanceAction
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import TaskState, VmState
from causeway.parts import devices, groups, history, making, releasing
from causeway.parts.services import ConductorServices
from causeway.scheduler.request import RequestedGroup, RequestSpec, Selection
from causeway.store.api import build_requests, mappings
from causeway.store.api.build_requests import BuildRequest
from causeway.store.cell import copies, instances
from causeway.store.database import Database, utcnow

LOG = logging.getLogger(__name__)

# Of a server without a cell.
GONE, BEING_BUILT = "gone", "being built"


class BuildEndpoint:
    """RPC: build_instance."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def build_instance(self, context: RequestContext, *, instance_uuid: str) -> None:
        services = self._services
        request = build_requests.find(services.api, instance_uuid)
        if request is None:
            LOG.info("Server %s was deleted before it was built", instance_uuid)
            return
        try:
            spec = self._spec(instance_uuid)
            asked = _asked_by_ports(request)
            spec.requested_resources = port_requests.all_groups(asked)
            spec.same_subtree = port_requests.subtrees(asked)
            result = services.scheduler.select_destinations(
                context, spec=spec, instance_uuids=[instance_uuid], alternates=True
            )[0]
            targets = self._that_its_group_allows(request, spec.server_group, [result.selected, *result.alternates])
        except errors.CausewayError as failure:
            self._bury(context, request, failure)
            return
        request.instance.numa_topology, request.instance.pci_requests = spec.numa_topology, spec.pci_requests
        self._build(context, request, targets, spec.server_group)

    def _that_its_group_allows(
        self, request: BuildRequest, group: RequestedGroup | None, targets: list[Selection]
    ) -> list[Selection]:
        """The targets from the first one on that the server's group allows; that one is claimed."""
        services, instance = self._services, request.instance
        for place, target in enumerate(targets):
            try:
                if place:
                    _claim(services, instance, target)
                groups.claim_host(services, group, instance.uuid, target.host)
            except errors.ClaimRefused as refusal:
                LOG.info("Host %s can't take server %s: %s", target.host, instance.uuid, refusal.message)
                last = refusal
            else:
                return targets[place:]
        services.placement.delete_allocations(instance.uuid)
        raise errors.NoValidHost(f"No valid host was found. {last.message}", details=last.details)

    def _spec(self, instance_uuid: str) -> RequestSpec:
        """The spec with what was asked for this build only; that part is not kept for later moves."""
        stored = mappings.get_spec(self._services.api, instance_uuid)
        spec = RequestSpec.from_persisted(stored)
        once = {name: stored[name] for name in ("force_hosts", "requested_destination") if stored.get(name)}
        if once:
            spec = msgspec.convert(msgspec.to_builtins(spec) | once, RequestSpec)
            mappings.save_spec(self._services.api, instance_uuid, spec.to_persist())
        asked = asked_of(self._services.conf, spec.flavor, spec.image)
        spec.numa_topology, spec.pci_requests = asked.numa_topology, asked.pci_requests
        spec.is_new = True
        return spec

    def _bury(self, context: RequestContext, request: BuildRequest, failure: errors.CausewayError) -> None:
        """A server that fits nowhere is kept in cell0, with the reason."""
        instance = request.instance
        instance.vm_state, instance.task_state = VmState.ERROR, None
        if not self._place(context, request, CELL0_UUID, failure):
            return
        self._services.notifier.compute_task_error(
            context, "build_instances", instance_uuid=instance.uuid, state=VmState.ERROR, error=failure
        )

    def _place(
        self,
        context: RequestContext,
        request: BuildRequest,
        cell_uuid: str,
        failure: errors.CausewayError | None = None,
    ) -> bool:
        """Writes the server into its cell, with the failure if there is one, and ends the build request.

        False if it was deleted meanwhile, or another conductor builds it: it took this one for dead (see `recovery`).
        """
        instance, services = request.instance, self._services
        action = InstanceAction(
            action="create",
            instance_uuid=instance.uuid,
            request_id=context.request_id,
            user_id=context.user_id,
            project_id=context.project_id,
            start_time=request.created_at,
        )
        database = services.cells.database(cell_uuid)
        bundle = copies.Bundle(instance, request.block_devices, [action], [])
        if failure is not None:
            event = history.failed_event("conductor_schedule_and_build_instances", failure)
            copies.add_events(bundle, context.request_id, [event])
            bundle.faults = [history.fault_of(failure)]
        try:
            copies.insert(database, bundle)
        except errors.StateChanged:
            present = build_requests.find(services.api, instance.uuid)
            if present is None or present.created_at != request.created_at:
                return False
            # What a conductor left that died right here.
            copies.write(database, bundle)
        with services.api.write() as connection:
            if build_requests.delete_in(connection, instance.uuid, created_at=request.created_at):
                mappings.set_cell_in(connection, instance.uuid, cell_uuid, expected=None)
                return True
        home = self._home(instance.uuid)
        if home not in (BEING_BUILT, cell_uuid):
            copies.hard_delete(database, instance.uuid)
        if home == GONE:
            services.placement.delete_allocations(instance.uuid)
        return False

    def _home(self, uuid: str) -> str:
        """The cell that a server is in by now."""
        try:
            return mappings.get(self._services.api, uuid).cell_uuid or BEING_BUILT
        except errors.ServerNotFound:
            return GONE

    def _build(
        self,
        context: RequestContext,
        request: BuildRequest,
        targets: list[Selection],
        group: RequestedGroup | None,
    ) -> None:
        services, instance = self._services, request.instance
        devices.name_devices(request.block_devices)
        _place_at(instance, targets[0])
        instance.task_state = TaskState.SPAWNING
        placed = self._place(context, request, targets[0].cell_uuid)
        groups.release(services, group, instance.uuid)
        if not placed:
            return
        database = services.cells.database(targets[0].cell_uuid)
        try:
            services.notifier.instance_action(context, instance, "create", "start", host=targets[0].host)
            self._allocate(context, database, request)
            outcome = self._spawn(context, database, request, targets, group)
        except Exception as failure:
            error = (
                failure
                if isinstance(failure, errors.CausewayError)
                else errors.OperationFailed(
                    f"Building failed unexpectedly: {type(failure).__name__}.", details=repr(failure)
                )
            )
            LOG.info("Server %s was not built", instance.uuid, exc_info=True)
            failed_builds.give_back(services, context, request)
            instance.vm_state = VmState.ERROR
            history.fail(
                database,
                instance.uuid,
                error,
                targets[0].host,
                vm_state=VmState.ERROR,
                task_state=None,
                host=None,
                node=None,
                network_info=[],
            )
            services.notifier.instance_action(context, instance, "create", "error", host=targets[0].host, fault=error)
            return
        kept = devices.save_guest(
            database,
            instance.uuid,
            outcome,
            vm_state=VmState.ACTIVE,
            task_state=None,
            launched_at=utcnow(),
            numa_topology=outcome.numa_topology,
            pci_devices=outcome.pci_devices,
            expected_task={TaskState.SPAWNING},
        )
        if not kept:
            # It was deleted while it was built, and there was nothing yet that could have been removed.
            services.computes(targets[0].cell_uuid).destroy_instance(
                context, instance.host or "", instance=instance, block_devices=outcome.block_devices
            )
            releasing.release(services, context, instance, request.block_devices)
            services.placement.delete_allocations(instance.uuid)
            return
        services.notifier.instance_action(context, instance, "create", "end", host=instance.host or "")

    def _allocate(self, context: RequestContext, database: Database, request: BuildRequest) -> None:
        """Makes ports (not bound yet), makes and reserves volumes."""
        services, instance = self._services, request.instance
        for wanted in request.requested_networks:
            instance.network_info.append(making.make_first_port(services, context, instance, wanted))
        for device in request.block_devices:
            if device.is_volume:
                making.make_volume(services, context, instance, device)
        devices.save_devices(database, instance, request.block_devices)

    def _spawn(
        self,
        context: RequestContext,
        database: Database,
        request: BuildRequest,
        targets: list[Selection],
        group: RequestedGroup | None,
    ) -> GuestOutcome:
        services, instance = self._services, request.instance
        asked = {each.port_id: each for each in _asked_by_ports(request)}
        for place, target in enumerate(targets):
            for vif in instance.network_info if asked else ():
                vif.profile = port_requests.with_allocation(
                    vif.profile, asked.get(vif.id), target.allocation_request.mappings
                )
            if place:
                try:
                    _claim(services, instance, target)
                    groups.claim_host(services, group, instance.uuid, target.host)
                except errors.ClaimRefused:
                    continue
                _place_at(instance, target)
                instances.update(
                    database,
                    instance.uuid,
                    host=instance.host,
                    node=instance.node,
                    availability_zone=instance.availability_zone,
                )
                groups.release(services, group, instance.uuid)
            try:
                with history.event(database, context, instance.uuid, "compute__do_build_and_run_instance", target.host):
                    return services.computes(target.cell_uuid).build_instance(
                        context, target.host, instance=instance, block_devices=request.block_devices
                    )
            except (errors.ClaimRefused, errors.GuestFailed, errors.RpcTimeout) as failure:
                LOG.warning("Host %s could not build server %s: %s", target.host, instance.uuid, failure.message)
                last = failure
                if isinstance(failure, errors.RpcTimeout):
                    failed_builds.destroy_at(services, context, request, target)
        raise last


def _claim(services: ConductorServices, instance: Instance, target: Selection) -> None:
    """Claims an alternate instead of what was claimed before."""
    services.placement.claim(
        instance.uuid, target.allocation_request.allocations, instance.project_id, instance.user_id
    )


def _asked_by_ports(request: BuildRequest) -> list[PortRequest]:
    given = [network for network in request.requested_networks if network.port_id is not None]
    found = (port_requests.request_of(network.port_id or "", network.resource_request) for network in given)
    return [each for each in found if each is not None]


def _place_at(instance: Instance, target: Selection) -> None:
    instance.host, instance.node = target.host, target.hypervisor_hostname
    instance.availability_zone = target.availability_zone
