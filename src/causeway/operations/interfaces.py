"""Attaches and detaches ports of servers, by the same rules as volumes (`volumes`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import sqlalchemy as sa

from causeway import errors
from causeway.clients.network import is_made_by, is_made_for
from causeway.clients.network_api import Json
from causeway.clients.port_owners import PortOwner
from causeway.clients.port_requests import ALLOCATION, request_of
from causeway.devices import making, port_resources, releasing
from causeway.devices.port_devices import for_attach
from causeway.model import operations
from causeway.model.instance import Instance
from causeway.model.network import RequestedNetwork, Vif
from causeway.model.pci import InstancePCIRequest, PciDevice
from causeway.model.things import Thing
from causeway.operations import device_endings
from causeway.running.operation_run import OperationRun
from causeway.running.patience import ServerStep, While
from causeway.sagas.memory import Given
from causeway.sagas.recipe import Recipe, Step
from causeway.servers import guests
from causeway.store.cell import instances


@dataclass
class AttachMemory:
    """``resource_id``: of the requested port; None if one is to be made. ``vif``: the port, once the server has it."""

    requested: RequestedNetwork
    resource_id: Given[str | None] = None
    vif: Vif | None = None


@dataclass
class DetachMemory:
    """``resource_id``: of the port. ``is_kept``: the guest does not release it. ``vif``: the port as the server had it."""

    resource_id: str
    is_kept: bool = False
    vif: Vif | None = None


D = TypeVar("D", InstancePCIRequest, PciDevice)
Attach: TypeAlias = OperationRun[AttachMemory]
Detach: TypeAlias = OperationRun[DetachMemory]


class MakePort(ServerStep[Attach]):
    """Makes or finds the port, and allocates the resources that it asks for."""

    name = "MakePort"
    reads = frozenset({"requested", "resource_id"})
    writes = frozenset({"vif"})
    makes = frozenset({Thing.ALLOCATION, Thing.PORT})

    def retried_while(self, run: Attach) -> While:  # noqa: ARG002
        return While.REQUESTER_WAITS

    def do(self, run: Attach) -> None:
        services, memory, instance = run.services, run.memory, run.instance(tags=False)
        device_endings.begin(run)
        requested = memory.requested
        if requested.network_id is None and requested.port_id is None:
            (requested,) = services.network.validate_networks(run.context, [], 1, instance.project_id)
        memory.vif = vif = making.make_port(services, run.context, instance, requested, operation_id=run.saga.id)
        asked = request_of(vif.id, requested.resource_request)
        if asked is not None:
            port_resources.claim(services, run.database, instance, vif, asked)

    def undo(self, run: Attach) -> None:
        instance = device_endings.instance_of(run)
        ports = _given_ports(run)
        for port in ports:
            if run.memory.resource_id is None:
                run.services.network.delete_port(run.context, port["id"])
            else:
                run.services.network.unbind_port(run.context, port["id"], port.get("binding:profile"))
        if instance is not None and any(port.get("resource_request") for port in ports):
            port_resources.settle(run.services, run.context, instance)


def _given_ports(run: Attach) -> list[Json]:
    """The port that the server got by this operation, as the network service has it; empty if the server does not have it."""
    ports = run.services.network.ports_of_server(run.context, _owner(run, run.memory.resource_id, run.memory.vif))
    if run.memory.vif is not None:
        return [port for port in ports if port["id"] == run.memory.vif.id]
    if run.memory.resource_id is not None:
        return [port for port in ports if port["id"] == run.memory.resource_id]
    return [port for port in ports if is_made_by(port, run.saga.id)]


def _owner(run: Attach | Detach, port_id: str | None, vif: Vif | None) -> PortOwner:
    """The server, which may be deleted by now, as the owner of its ports and of the one that the operation is about."""
    instance = device_endings.instance_of(run)
    about = frozenset(each for each in (port_id, vif.id if vif is not None else None) if each is not None)
    if instance is None:
        return PortOwner(run.uuid, run.context.project_id or "", about)
    known = PortOwner.of(instance)
    return replace(known, recorded=known.recorded | about)


class PlugPort(ServerStep[Attach]):
    """Binds the port to the server's host, and plugs it into the guest."""

    name = "PlugPort"
    reads = frozenset({"requested"})
    writes = frozenset({"vif"})
    makes = frozenset({Thing.CLAIM, Thing.DEVICE})

    def where(self, run: Attach) -> str | None:
        return run.instance(tags=False).host

    def retried_while(self, run: Attach) -> While:  # noqa: ARG002
        return While.REQUESTER_WAITS

    def do(self, run: Attach) -> None:
        vif, instance = run.memory.vif, run.instance(tags=False)
        if vif is None:
            raise RuntimeError("the port was not made")
        host = instance.host or ""
        instance.network_info = [*instance.network_info, vif]
        asked = run.memory.requested.pci_request
        with run.event(run.kind.event, host):
            if asked is not None:
                self._claim_device(run, host, instance, vif, asked)
            found = run.computes.plug_port(
                run.context, host, token=run.token(self.name), instance=instance, port_id=vif.id
            )
        run.memory.vif = plugged = next(port for port in found if port.id == vif.id)
        with run.database.write() as connection:
            # Other operations may have attached or detached ports meanwhile, so the host's view of those may be old.
            ports = [port for port in instances.get_in(connection, run.uuid).network_info if port.id != vif.id]
            instances.update_in(connection, run.uuid, network_info=[*ports, plugged])
            run.write_history(connection)

    def _claim_device(self, run: Attach, host: str, instance: Instance, vif: Vif, asked: InstancePCIRequest) -> None:
        """Claims the device that the port needs, and records it before the guest has it."""
        (asked,) = for_attach(run.services, instance, vif, asked, run.memory.requested.resource_request)
        try:
            device = run.computes.claim_port_device(
                run.context, host, token=run.token(self.name), instance=instance, request=asked
            )
        except errors.ClaimRefused as full:
            raise errors.BadRequest(full.message, details=full.details) from full
        with run.database.write() as connection:
            record = instances.get_in(connection, run.uuid, with_tags=False)
            instance.pci_requests = [*_without(record.pci_requests, asked.request_id), asked]
            instance.pci_devices = [*_without(record.pci_devices, asked.request_id), device]
            instances.update_in(
                connection, run.uuid, pci_requests=instance.pci_requests, pci_devices=instance.pci_devices
            )

    def undo(self, run: Attach) -> None:
        instance, vif = device_endings.instance_of(run), run.memory.vif
        if instance is None or vif is None:
            return
        if instance.host:
            guests.require_host(run, instance.host)
            run.computes.unplug_port(run.context, instance.host, token=run.token(self.name), instance=instance, vif=vif)
        with run.database.write() as connection:
            _take_from_record(connection, run.uuid, vif.id)


class UnplugPort(Step[Detach]):
    """Detaches the port from the guest. Waits for a host that is down, because its guest may start again with the port."""

    name = "UnplugPort"
    reads = frozenset({"resource_id"})
    writes = frozenset({"is_kept", "vif"})

    def where(self, run: Detach) -> str | None:
        return device_endings.host_of(run)

    def do(self, run: Detach) -> None:
        device_endings.begin(run)
        instance = device_endings.instance_of(run)
        if instance is None:
            return
        run.memory.vif = vif = _vif(run, instance)
        if vif is None or not instance.host:
            return
        with device_endings.detach_order(run, instance.host):
            run.computes.unplug_port(run.context, instance.host, token=run.token(self.name), instance=instance, vif=vif)


def _vif(run: Detach, instance: Instance) -> Vif | None:
    """The port as the server has it; None if it has none. The network service may have one that no record names."""
    port_id = run.memory.resource_id
    recorded = next((each for each in instance.network_info if each.id == port_id), None)
    if recorded is not None or run.memory.vif is not None:
        return recorded or run.memory.vif
    held = run.services.network.ports_of_server(run.context, PortOwner.of(instance))
    port = next((each for each in held if each["id"] == port_id), None)
    if port is None:
        return None
    return run.services.network.vif_of_port(run.context, port, preserve_on_delete=not is_made_for(port, run.uuid))


class ReleasePort(Step[Detach]):
    """Releases the port. A port that was made for the server is deleted; a user's own port may be another server's by now."""

    name = "ReleasePort"
    reads = frozenset({"is_kept", "vif"})

    def do(self, run: Detach) -> None:
        services, vif, instance = run.services, run.memory.vif, device_endings.instance_of(run)
        if run.memory.is_kept or instance is None or vif is None:
            # The delete of the server releases its ports.
            return
        held = not run.is_repeated or vif.id in {
            port["id"] for port in services.network.ports_of_server(run.context, _owner(run, None, vif))
        }
        if held:
            releasing.release_port(services, run.context, vif)
        if ALLOCATION in vif.profile:
            port_resources.settle(services, run.context, instance)
        with run.database.write() as connection:
            _take_from_record(connection, run.uuid, vif.id)
            run.write_history(connection)


def _take_from_record(connection: sa.Connection, uuid: str, port_id: str) -> None:
    record = instances.get_in(connection, uuid, with_tags=False)
    left = [port for port in record.network_info if port.id != port_id]
    if len(left) < len(record.network_info):
        instances.update_in(connection, uuid, network_info=left)
    requests = _without(record.pci_requests, port_id)
    if len(requests) < len(record.pci_requests):
        devices = _without(record.pci_devices, port_id)
        instances.update_in(connection, uuid, pci_requests=requests, pci_devices=devices)


def _without(asked_or_held: Sequence[D], port_id: str) -> list[D]:
    return [each for each in asked_or_held if each.request_id != port_id]


def _undo_late(run: Attach) -> None:
    """Undoes what a conductor did too late, after another one had taken over, unless the user has requested the port again."""
    run.refresh()
    if not device_endings.is_asked_anew(run):
        PlugPort().undo(run)
        MakePort().undo(run)


ATTACH_INTERFACE = Recipe(
    operations.ATTACH_INTERFACE,
    (MakePort(), PlugPort()),
    pivot="PlugPort",
    rolled_back=device_endings.rolled_back,
    undo_late=_undo_late,
    attended=True,
    memory=AttachMemory,
)

# A detach begins behind its pivot, so it only goes forward.
DETACH_INTERFACE = Recipe(
    operations.DETACH_INTERFACE,
    (UnplugPort(), ReleasePort()),
    pivot="UnplugPort",
    rolled_back=device_endings.rolled_back,
    memory=DetachMemory,
)
