"""NUMA cells and PCI devices of a moving server: those that the new flavor needs, the target claims and the source holds.

The target returns its claim in the server's migration context. When the server has moved, its record gets the fields ``new_*`` of
the context; when it is restored at its source, the fields ``old_*``. Requests for hardware are not stored, but computed from
flavor and image each time they are needed.
"""

from __future__ import annotations

import dataclasses
import logging

from oslo_config.cfg import ConfigOpts

from causeway import errors
from causeway.hardware.port_devices import of_devices, passed_through, requests_of
from causeway.hardware.requests import asked_of
from causeway.hosts import liveness
from causeway.model.flavor import Flavor
from causeway.model.host import ATTACHES_PORT_DEVICES
from causeway.model.instance import Instance, MigrationContext
from causeway.model.live_obstacles import live_obstacle
from causeway.model.missed import Missed
from causeway.model.outcomes import RecordedClaim
from causeway.model.states import VmState
from causeway.moves.dead_hosts import note_target
from causeway.moves.move_run import Run
from causeway.store.cell import hosts

LOG = logging.getLogger(__name__)


def asking(conf: ConfigOpts, instance: Instance, flavor: Flavor) -> Instance:
    """Returns the server with the requests of a new flavor and of its ports, for the checks of a target."""
    asked = asked_of(conf, flavor, instance.image_meta, requests_of(instance))
    return dataclasses.replace(
        instance, numa_topology=asked.numa_topology, pci_requests=asked.pci_requests, pci_devices=[]
    )


def refuse_devices_that_stay(run: Run) -> None:
    """Raises NoValidHost if the server has devices that can't be detached from its guest while the guest's memory travels."""
    instance = run.source_instance()
    asked = asking(run.services.conf, instance, run.memory.new_flavor).pci_requests
    if passed_through(instance) or any(request.requester_id is None for request in asked):
        raise errors.NoValidHost(
            f"Server {run.uuid} has PCI devices, whose state can't go to another host. Move it by a cold migration."
        )
    what = live_obstacle(
        instance.flavor, instance.image_meta, (vif.vnic_type for vif in instance.network_info), instance.vm_state
    )
    if what is not None:
        raise errors.NoValidHost(f"A migration with the guest's memory is not possible for a {what}.")


def require_attaching(run: Run, host: str) -> None:
    """Raises ClaimRefused if the server has ports with devices, and the target attaches no such ports to a running guest."""
    if not of_devices(run.source_instance().network_info):
        return
    nodes = hosts.list_nodes(run.target_database, host=host)
    if not any(node.capabilities.get(ATTACHES_PORT_DEVICES) for node in nodes):
        raise errors.ClaimRefused(
            "The chosen host does not attach SR-IOV ports to a running guest.", details=f"host {host}"
        )


def has_claims(context: MigrationContext) -> bool:
    """Whether the target has claimed NUMA cells or PCI devices."""
    return context.new_numa_topology is not None or bool(context.new_pci_devices)


def add_old(context: MigrationContext, instance: Instance) -> None:
    """Adds what the source holds to the context that the target returned."""
    context.old_numa_topology = instance.numa_topology
    context.old_pci_requests, context.old_pci_devices = instance.pci_requests, instance.pci_devices


def with_new(instance: Instance) -> Instance:
    """Returns the server with the hardware that its target claimed."""
    context = instance.migration_context
    if context is None:
        return instance
    return dataclasses.replace(
        instance,
        numa_topology=context.new_numa_topology,
        pci_requests=context.new_pci_requests,
        pci_devices=context.new_pci_devices,
    )


def with_old(instance: Instance) -> Instance:
    """Returns the server with the hardware that its source holds."""
    context = instance.migration_context
    if context is None:
        return instance
    return dataclasses.replace(
        instance,
        numa_topology=context.old_numa_topology,
        pci_requests=context.old_pci_requests,
        pci_devices=context.old_pci_devices,
    )


def recorded_claims(instance: Instance, host: str) -> list[RecordedClaim]:
    """Returns what a host holds for a server according to its record: as its host, or as target or source of its move."""
    context = instance.migration_context
    if context is None:
        return [RecordedClaim(instance)] if instance.host == host else []
    # Once the server has moved, its own record has the hardware that the target claimed, and the context is not needed.
    moved = instance.vm_state is VmState.RESIZED or instance.host == context.dest_host != context.source_host
    found = []
    if context.dest_host == host:
        found.append(RecordedClaim(instance if moved else with_new(instance), context.migration_uuid))
    if context.source_host == host:
        found.append(RecordedClaim(with_old(instance) if moved else instance))
    return found


def release_claim_if_there(run: Run, host: str, step: str) -> None:
    """The same as `release_claim`, for a host that did not answer. Does not raise, so that the move can try the next host.

    If the host does not answer this order either, the release is noted, and the host gets the order when the move has ended.
    """
    if not _claims(run):
        return
    try:
        if _is_up(run, host):
            _release(run, host, step)
            return
    except errors.RpcTimeout:
        LOG.warning("Host %s keeps a claim for server %s until it answers", host, run.uuid)
    note_target(run, host, Missed.RELEASE_CLAIM)


def _claims(run: Run) -> bool:
    instance = run.source_instance()
    return bool(asked_of(run.services.conf, run.memory.new_flavor, instance.image_meta, requests_of(instance)))


def _is_up(run: Run, host: str) -> bool:
    return liveness.of_host(run.services, run.target_database, host).is_up


def _release(run: Run, host: str, step: str) -> None:
    run.target_computes.drop_move_claim(run.context, host, token=run.token(step), instance_uuid=run.uuid)


def release_claim(run: Run, host: str, step: str) -> None:
    """Has a host that the move abandons release its claim. Does nothing for a server without claims of hardware.

    The move does not wait for a host that is down: the host releases the claim when it is up again.
    """
    if not _claims(run):
        return
    try:
        if _is_up(run, host):
            _release(run, host, step)
            return
    except errors.RpcTimeout:
        if _is_up(run, host):
            raise
    note_target(run, host, Missed.RELEASE_CLAIM)
