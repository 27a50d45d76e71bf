"""Makes and removes guests, volumes and ports at a host, for steps of several operations. All of it may be repeated."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from causeway import errors
from causeway.clients.network import without_host
from causeway.clients.port_owners import PortOwner
from causeway.devices import attachments, device_records
from causeway.hosts import cleanups, liveness
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.missed import Missed
from causeway.model.outcomes import GuestOutcome
from causeway.running.operation_run import OperationRun
from causeway.servers.unplugged import warn_of_unplugged


def require_host(run: OperationRun[Any], host: str) -> None:
    """Raises HostDown if the host does not report now, HostFenced if an operator has fenced it."""
    life = liveness.of_host(run.services, run.database, host)
    life.refuse_fenced()
    if not life.is_up:
        raise errors.HostDown("The host of the server is needed for that.", details=life.explained())


def is_dead(run: OperationRun[Any], host: str) -> bool:
    """Whether an operator has fenced the host: it runs no guest, and all its guests are off when it is up again.

    Raises HostDown if the host is down and not fenced.
    """
    life = liveness.of_host(run.services, run.database, host)
    if life.is_down:
        raise errors.HostDown("The host of the server is needed for that.", details=life.explained())
    return life.is_fenced


def remove(run: OperationRun[Any], step: str, host: str, instance: Instance, present: list[BlockDevice]) -> None:
    """Destroys the guest with its disks. Notes the order for a fenced host, which gets it when it is up again.

    Raises HostDown if the host is down and not fenced.
    """
    if is_dead(run, host):
        cleanups.note(run.services, host, run.cell.uuid, Missed.REMOVE, instance, present)
        return
    run.computes.remove_guest(run.context, host, token=run.token(step), instance=instance, block_devices=present)


def make_anew(
    run: OperationRun[Any],
    step: str,
    there: Instance,
    present: list[BlockDevice],
    *,
    snapshot_id: str | None,
    power_on: bool,
    dead_host: str | None = None,
) -> GuestOutcome:
    """Has a host make the guest, from its image unless its root disk is a volume. ``there``: the server as it is on that host.

    ``snapshot_id``: of a shelved server, the image to use instead. ``dead_host``: the disks that it kept in shared storage are
    used instead.
    """
    guest = run.computes.rebuild_guest(
        run.context,
        there.host or "",
        token=run.token(step),
        instance=there,
        block_devices=present,
        snapshot_id=snapshot_id,
        power_on=power_on,
        dead_host=dead_host,
    )
    run.transferred(guest.bytes_done)
    warn_of_unplugged(run, there.host or "", guest)
    return guest


def keep_volumes_reserved(
    run: OperationRun[Any], only: list[BlockDevice] | None = None, *, in_doubt: bool = False
) -> None:
    """Reserves every volume (or ``only`` these) for the server, and disconnects it.

    ``in_doubt``: an earlier attempt may have begun.
    """
    present = run.devices() if only is None else only
    attachments.reserve_anew(run.services, run.context, run.database, present, in_doubt=in_doubt)
    if not (run.is_repeated or run.is_undoing):
        return
    # An earlier attempt may have left an unrecorded reservation, or the one that the record named before.
    known: set[str | None] = {device.attachment_id for device in present}
    for device in present:
        if device.is_volume and device.volume_id is not None:
            device_records.release_reservations(run.services, run.context, run.uuid, device.volume_id, known)


def set_volumes_in_use(run: OperationRun[Any]) -> None:
    """Shows the server's volumes as in use, also those that no host has connected: the server stays where it was."""
    for device in run.devices():
        if device.is_volume and device.attachment_id is not None:
            run.services.volumes.complete_attachment(run.context, device.attachment_id)


def bind_ports_back(run: OperationRun[Any], there: str, host: str) -> None:
    """Binds the server's ports to its host again, which may be dead. ``there``: the host that they were bound to meanwhile."""
    instance = run.instance()
    profiles = {vif.id: vif.profile for vif in instance.network_info}
    for port in run.services.network.ports_of_server(run.context, PortOwner.of(instance)) if profiles else ():
        profile = profiles.get(port["id"])
        if profile is None or port.get("binding:host_id") != there:
            continue
        allocated = {"binding:profile": profile} if without_host(profile) != profile else {}
        owner = f"compute:{instance.availability_zone or ''}"
        with suppress(errors.PortNotFound):
            run.services.network.update_port(
                run.context, port["id"], {"binding:host_id": host, "device_owner": owner} | allocated
            )


def unbind_ports(run: OperationRun[Any], instance: Instance) -> None:
    """Unbinds the server's ports from every host."""
    for vif in instance.network_info:
        changes = {"binding:host_id": "", "binding:profile": without_host(vif.profile)}
        with suppress(errors.PortNotFound):
            run.services.network.update_port(run.context, vif.id, changes)
