"""The actions of every kind of move on its hosts: a guest leaves a host, starts on another one, and is restored."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from causeway import errors
from causeway.compute.disks.wanted_disks import local_disks
from causeway.compute.guests import guest, plugging, volume_keys
from causeway.compute.handover import disk_transfer
from causeway.compute.handover.verify import require_disks
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome, OperationToken
from causeway.model.shared_disk import SharedDisk
from causeway.model.states import PowerState
from causeway.virt.driver import GuestFacts, GuestSpec, LocalDisk


def check_volumes(host: Host, context: RequestContext, block_devices: list[BlockDevice]) -> None:
    """Raises ClaimRefused if a volume can't be connected to this host, or can't be decrypted here."""
    for device in guest.volumes_of(block_devices):
        if device.connection_info is not None:
            host.driver.check_volume_connectable(device.connection_info)
            volume_keys.check(host, context, device)


def switch_off(host: Host, instance: Instance, block_devices: list[BlockDevice], *, needs_disks: bool) -> None:
    """Powers the guest off, with its disks in their place.

    Raises CopyNotUsable if these disks are not whole and there are stashed ones, which may be better.
    """
    with _disks_in_place(host, instance, block_devices, needs_disks=needs_disks) as facts:
        if facts.power_state in (PowerState.RUNNING, PowerState.PAUSED):
            # A paused guest can't shut itself down, and it has its disks open.
            patience = host.shutdown_timeout(instance) if facts.power_state is PowerState.RUNNING else 0
            host.driver.power_off(instance.uuid, patience)


def save_memory(host: Host, instance: Instance, block_devices: list[BlockDevice]) -> Path:
    """Saves the guest's memory to a file, with its disks in their place, and powers it off. Returns the file.

    Raises CopyNotUsable like `switch_off`, GuestFailed if the guest did not run any more.
    """
    with _disks_in_place(host, instance, block_devices, needs_disks=True):
        host.driver.save_memory(instance.uuid)
    memory = host.driver.saved_memory(instance.uuid)
    if memory is None:
        raise errors.GuestFailed(f"The memory of server {instance.uuid} was saved, but the file is missing. Try again.")
    return memory


def require_nothing_of(host: Host, uuid: str, *, has_guest: bool = False) -> None:
    """Raises ClaimRefused if a chosen host has something of the server already: a guest, disks or stashed disks. Also if it can't
    write into its own folders.

    ``has_guest``: it has one that the driver does not count among its guests yet.
    """
    host.require_open()
    facts = host.driver.inspect(uuid)
    if has_guest or facts.power_state is not None or facts.has_disks or facts.has_stashed_disks:
        raise errors.ClaimRefused(
            f"The chosen host has a guest or disks of server {uuid} already.",
            details=f"host {host.name}; run `causeway audit` to see what they are",
        )


def require_reached(host: Host, shared: dict[str, SharedDisk]) -> None:
    """Raises ClaimRefused unless the host really sees the disks that a server's source says both share."""
    if shared and not host.driver.reaches_disks(shared):
        raise errors.ClaimRefused(
            "The chosen host does not see the server's disks, though it reports the same storage as the server's host.",
            details=f"host {host.name}: {', '.join(f'{disk.name} in {disk.store}' for disk in shared.values())}",
        )


@contextmanager
def _disks_in_place(
    host: Host, instance: Instance, block_devices: list[BlockDevice], *, needs_disks: bool
) -> Iterator[GuestFacts]:
    """Encloses switching the guest off. Then the guest's disks are in their place, and none are stashed.

    Deletes the disks that an earlier move stashed. Restores those that an earlier attempt of this move stashed.
    """
    facts = host.driver.inspect(instance.uuid)
    stashed_before = facts.power_state is not None and facts.has_disks and facts.has_stashed_disks
    if stashed_before:
        require_disks(host, instance, block_devices, stashed=False)
    yield facts
    if stashed_before:
        # Nova's bug 1960230: the guest has its disks, but stashed ones that an earlier move did not delete are in the way.
        host.driver.delete_stashed_disks(instance.uuid)
    if needs_disks and facts.has_stashed_disks and not facts.has_disks:
        # An earlier attempt of this move stashed them. They must be in their place to be read.
        host.driver.restore_stashed_disks(instance.uuid)


def destroy_and_stash_disks(host: Host, instance: Instance, block_devices: list[BlockDevice]) -> None:
    """Destroys the guest and stashes its disks, so that it can be restored from them."""
    host.driver.destroy(instance.uuid, instance.network_info, guest.volumes_of(block_devices), destroy_disks=False)
    host.driver.stash_disks(instance.uuid)


def make_guest(
    host: Host,
    context: RequestContext,
    instance: Instance,
    block_devices: list[BlockDevice],
    receive: Callable[[], disk_transfer.Received],
    *,
    power_on: bool,
    same_host: bool = False,
    operation_id: str | None = None,
) -> GuestOutcome:
    """Takes over ports and volumes, and makes the guest from the disks that ``receive`` returns.

    ``operation_id``: the move, if its disks may have been copied while the guest ran.
    """
    with host.lock(instance.uuid), host.vif_events.watch(instance.uuid) as watch:
        facts = host.driver.inspect(instance.uuid)
        # If the driver has taken the disks that were copied while the guest ran, they can't be made again.
        keeps_disks = operation_id is not None and host.copies.is_taken(operation_id)
        if same_host and not facts.has_stashed_disks:
            raise errors.GuestFailed(
                f"The old disks of server {instance.uuid} were not stashed.", details=f"host {host.name}"
            )
        if power_on and facts.power_state is PowerState.RUNNING:
            return complete_running_guest(host, context, instance, block_devices)
        if facts.power_state is not None or facts.has_disks:
            # An earlier attempt was interrupted; what it connected is still connected.
            destroy_with_disks(
                host,
                instance,
                guest.with_connections(host, context, block_devices),
                same_host=same_host,
                keeps_disks=keeps_disks,
            )
        else:
            host.image_cache.discard_received(instance.uuid)
        vifs = guest.take_over_ports(host, context, instance)
        try:
            received = receive()
            with guest.connected_volumes(host, context, block_devices) as volumes:
                spec = guest.spec_of(
                    host,
                    context,
                    instance,
                    vifs,
                    volumes,
                    block_devices=block_devices,
                    power_on=power_on,
                )
                received.put_into(spec)
                if operation_id is not None:
                    adopt_completed(host, spec, operation_id)
                power_state = host.driver.spawn(
                    spec, vifs_plugged=plugging.before_start(host, watch, vifs if power_on else [])
                )
        finally:
            host.image_cache.discard_received(instance.uuid)
    ports, name = plugging.as_plugged(watch, vifs, power_on), guest.name_here(host, instance)
    return GuestOutcome(power_state, ports, volumes, guest_name=name)


def adopt_completed(host: Host, spec: GuestSpec, operation_id: str) -> None:
    """Lets the driver take the disks that were copied while the guest ran.

    After a failure the driver keeps them, because they can't be made again.
    """
    if host.copies.has_completed(operation_id):
        host.driver.adopt_disks(spec)
        spec.root_disk = spec.kept_state = None
        spec.local_disks = [dataclasses.replace(disk, snapshot=None) for disk in spec.local_disks]


def complete_running_guest(
    host: Host, context: RequestContext, instance: Instance, block_devices: list[BlockDevice]
) -> GuestOutcome:
    """Completes the ports and volumes of a guest that runs here already, and returns the outcome.

    Either the guest never left, or an earlier attempt started it. A guest that runs has all of its disks.
    """
    vifs = guest.take_over_ports(host, context, instance)
    with guest.connected_volumes(host, context, block_devices) as volumes:
        host.image_cache.discard_received(instance.uuid)
    name = guest.name_here(host, instance)
    return GuestOutcome(PowerState.RUNNING, plugging.not_awaited(vifs), volumes, guest_name=name)


def restore_from_stashed_disks(
    host: Host, context: RequestContext, instance: Instance, block_devices: list[BlockDevice], *, power_on: bool
) -> GuestOutcome:
    """Makes the guest again from its stashed disks, with its ports and volumes."""
    with host.lock(instance.uuid), host.vif_events.watch(instance.uuid) as watch:
        host.offers.end_all(instance.uuid)
        host.rounds.discard_all(instance.uuid)
        facts = host.driver.inspect(instance.uuid)
        vifs = guest.take_over_ports(host, context, instance)
        if facts.power_state is PowerState.RUNNING:
            # The guest never stopped, or an earlier attempt restored it without completing its volumes.
            with guest.connected_volumes(host, context, block_devices) as volumes:
                name = guest.name_here(host, instance)
                return GuestOutcome(PowerState.RUNNING, plugging.not_awaited(vifs), volumes, guest_name=name)
        if facts.power_state is None or not facts.has_disks:
            host.driver.restore_stashed_disks(instance.uuid)
        with guest.connected_volumes(host, context, block_devices) as volumes:
            spec = guest.spec_of(host, context, instance, vifs, volumes, block_devices=block_devices, power_on=power_on)
            power_state = host.driver.spawn(
                spec, vifs_plugged=plugging.before_start(host, watch, vifs if power_on else [])
            )
    ports, name = plugging.as_plugged(watch, vifs, power_on), guest.name_here(host, instance)
    return GuestOutcome(power_state, ports, volumes, guest_name=name)


def destroy_with_disks(
    host: Host,
    instance: Instance,
    block_devices: list[BlockDevice],
    *,
    same_host: bool = False,
    keeps_disks: bool = False,
) -> None:
    """Destroys the guest with its disks (unless ``keeps_disks``), and discards received files. Stashed disks stay.

    ``same_host``: this host is the move's source too. As long as no disks are stashed, the guest here is the old one, and stays.
    """
    driver = host.driver
    host.image_cache.discard_received(instance.uuid)
    facts = driver.inspect(instance.uuid)
    if same_host and not facts.has_stashed_disks:
        return
    volumes = [device for device in guest.volumes_of(block_devices) if device.connection_info]
    # Volumes can be connected without a guest, because they are connected first.
    if facts.power_state is not None or facts.has_disks or volumes:
        driver.destroy(instance.uuid, instance.network_info, volumes, destroy_disks=not keeps_disks)


def destroy_and_release_claim(
    host: Host,
    context: RequestContext,
    token: OperationToken,
    instance: Instance,
    block_devices: list[BlockDevice],
    *,
    same_host: bool = False,
) -> None:
    """`destroy_with_disks`, and releases the move's claim."""
    with host.lock(instance.uuid):
        # If an answer was lost, the conductor does not know which volumes are connected here.
        devices = guest.with_connections(host, context, block_devices)
        destroy_with_disks(host, instance, devices, same_host=same_host)
        host.copies.discard(token.operation_id)
        host.claims.release(instance.uuid, token.migration_uuid)


def delete_stashed_disks(host: Host, token: OperationToken, instance: Instance) -> None:
    """Deletes the stashed disks, their rounds, offers and claims, because the server stays at its target."""
    with host.lock(instance.uuid):
        host.offers.end_all(instance.uuid)
        host.rounds.discard(token.operation_id)
        host.driver.delete_stashed_disks(instance.uuid)
        host.claims.release_others(instance.uuid, token.migration_uuid)


def wanted_disks(host: Host, block_devices: list[BlockDevice]) -> list[LocalDisk]:
    """Returns the local disks of the new guest without its root disk; they have no content yet."""
    return local_disks(host.conf, block_devices)
