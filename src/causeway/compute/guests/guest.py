"""The parts of a guest: its ports, its volumes, its disks."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from causeway import errors
from causeway.clients.port_owners import PortOwner
from causeway.clients.port_requests import ALLOCATION
from causeway.compute.disks.wanted_disks import local_disks
from causeway.compute.guests import tpm_keys, volume_keys
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.guest_data import config_drive
from causeway.guest_data.facts import ServerFacts, host_name
from causeway.hardware import port_devices
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.outcomes import GuestOutcome
from causeway.model.states import PowerState
from causeway.virt.driver import GuestSpec, Rescue, RootDisk

LOG = logging.getLogger(__name__)


def spec_of(
    host: Host,
    context: RequestContext,
    instance: Instance,
    vifs: list[Vif],
    volumes: list[BlockDevice],
    *,
    block_devices: list[BlockDevice],
    root_disk: RootDisk | None = None,
    power_on: bool = True,
    rescue: Rescue | None = None,
) -> GuestSpec:
    """Describes the guest of a server with these ports, connected ``volumes``, and the local disks of ``block_devices``.

    The hypervisor has the key of its TPM from then on. Raises DecryptionRefused.
    """
    tpm_keys.hold(host, context, instance)
    root_only = rescue is not None and not rescue.image.is_stable
    return GuestSpec(
        instance=instance,
        root_disk=root_disk,
        volumes=[] if root_only else volumes,
        vifs=vifs,
        power_on=power_on,
        config_drive=_config_drive(host, instance, vifs, block_devices),
        local_disks=[] if root_only else local_disks(host.conf, block_devices),
        rescue=rescue,
    )


def refuse_late_start(host: Host, context: RequestContext, instance: Instance) -> None:
    """Raises an error if the order to start this guest is no longer wanted: see `CellConductorClient.check_start`.

    Such an order has waited in the queue of a host that was down. Orders with a token do not need this: the fence has them.
    """
    # A conductor of 0.1.0 does not know.
    with suppress(errors.NoSuchMethod):
        host.conductor.check_start(context, host=host.name, instance_uuid=instance.uuid, task_state=instance.task_state)


def outcome_of(
    host: Host, instance: Instance, power_state: PowerState, vifs: list[Vif], volumes: list[BlockDevice]
) -> GuestOutcome:
    """The outcome for a guest that was started on its own host. Its claim is unchanged."""
    return GuestOutcome(
        power_state,
        vifs,
        volumes,
        numa_topology=instance.numa_topology,
        pci_devices=instance.pci_devices,
        guest_name=name_here(host, instance),
    )


def name_here(host: Host, instance: Instance) -> str | None:
    """The name that the guest has on this host, for a server whose record has one."""
    return None if instance.guest_name is None else host.driver.guest_name(instance.uuid)


def _config_drive(
    host: Host, instance: Instance, vifs: list[Vif], block_devices: list[BlockDevice]
) -> dict[str, bytes]:
    """The files of the server's config drive; empty if it has none."""
    if not instance.config_drive:
        return {}
    domain = host.conf.api.dhcp_domain
    facts = ServerFacts(
        instance,
        vifs,
        block_devices,
        domain,
        host.vendordata.static(),
        partial(host.vendordata.dynamic, instance, host_name(instance, domain)),
        instance.admin_password,
    )
    return config_drive.files(facts)


def volumes_of(block_devices: list[BlockDevice]) -> list[BlockDevice]:
    return [device for device in block_devices if device.is_volume]


@contextmanager
def connected_volumes(
    host: Host, context: RequestContext, block_devices: list[BlockDevice]
) -> Iterator[list[BlockDevice]]:
    """The volumes with connection info for this host.

    An attachment without connection info is first updated with this host's connector. The hypervisor has the keys of encrypted
    volumes when the block begins. If the block succeeds, the guest has
    opened the volume, and the attachment is completed. A data volume that no longer exists is left out.
    """
    connected: list[BlockDevice] = []
    fresh: list[str] = []
    for device in volumes_of(block_devices):
        if device.connection_info is None and device.attachment_id is not None:
            connector = host.driver.volume_connector()
            try:
                info = _connect(host, context, device.attachment_id, connector, device.device_name)
            except errors.VolumeNotFound:
                # If only the attachment was deleted, another request works on the volume: the guest must not start without it.
                if device.is_root or device.volume_id is None or not host.volumes.is_gone(context, device.volume_id):
                    raise
                LOG.warning("Volume %s of a server is gone: the guest starts without it", device.volume_id)
                continue
            host.driver.check_volume_connectable(info)
            device = dataclasses.replace(device, connection_info=info)
            fresh.append(device.attachment_id or "")
        volume_keys.hold(host, context, device)
        connected.append(device)
    yield connected
    for attachment_id in fresh:
        host.volumes.complete_attachment(context, attachment_id)


def _connect(
    host: Host, context: RequestContext, attachment_id: str, connector: Mapping[str, Any], device_name: str | None
) -> dict[str, Any]:
    """The connection info of an attachment of this host. Raises VolumeNotFound, ServiceRefused."""
    try:
        return host.volumes.update_attachment(context, attachment_id, connector, device_name)
    except errors.ServiceRefused:
        # An earlier attempt may have connected it. A volume with two attachments can't be connected a second time.
        present = host.volumes.get_attachment(context, attachment_id)
        if not present.is_connected:
            raise
        return present.connection_info


def with_connections(host: Host, context: RequestContext, block_devices: list[BlockDevice]) -> list[BlockDevice]:
    """The devices, with missing connection info filled from the volume service's attachments of this host."""
    found = []
    for device in block_devices:
        if device.is_volume and device.connection_info is None and device.attachment_id is not None:
            with suppress(errors.VolumeNotFound):
                attachment = host.volumes.get_attachment(context, device.attachment_id)
                device = dataclasses.replace(device, connection_info=attachment.connection_info or None)
        found.append(device)
    return found


def take_over_ports(host: Host, context: RequestContext, instance: Instance) -> list[Vif]:
    """Makes this host's bindings the active ones. Returns the ports as they are then. The caller must open a watch before.

    Leaves out deleted ports. The owner of the others names the server's new zone.
    """
    if not instance.network_info:
        return []
    owner = owner_of(instance)
    alone: set[str] = set()
    for vif in instance.network_info:
        try:
            if host.network.activate_binding(context, vif.id, host.name).must_be_alone:
                host.network.delete_other_bindings(context, vif.id, host.name)
                alone.add(vif.id)
        except errors.NotFound:
            _bind_anew(host, context, instance, vif)
    ports = host.network.ports_of_server(context, PortOwner.of(instance))
    wanted = {vif.id: _of_this_host(instance, vif) for vif in instance.network_info}
    for number, port in enumerate(ports):
        # Updating a port makes the agent look at it again.
        again = port.get("device_owner") != owner or port["id"] in alone
        changes: dict[str, Any] = {"device_owner": owner} if again else {}
        profile = port.get("binding:profile") or {}
        here = wanted.get(port["id"], {})
        if any(profile.get(name) != value for name, value in here.items()):
            # A move within the host keeps the binding, but the provider or the device may have changed.
            kept = port_devices.with_device(profile, None) if "pci_slot" in here else profile
            changes["binding:profile"] = {**kept, **here}
        if changes:
            ports[number] = host.network.update_port(context, port["id"], changes)
    return host.network.network_info(context, instance, ports=ports)


def _of_this_host(instance: Instance, vif: Vif) -> dict[str, Any]:
    """The part of a port's binding profile that depends on this host."""
    here = {ALLOCATION: vif.profile[ALLOCATION]} if vif.profile.get(ALLOCATION) else {}
    device = port_devices.device_of(instance, vif.id)
    return here if device is None else here | port_devices.profile_of(device)


def owner_of(instance: Instance) -> str:
    """The owner of the server's ports."""
    return f"compute:{instance.availability_zone or ''}"


def bind_port(host: Host, context: RequestContext, instance: Instance, vif: Vif) -> None:
    """Binds a port to this host, with the providers and the device that serve the port's requests."""
    here = _of_this_host(instance, vif)
    profile = {**port_devices.with_device(vif.profile, None), **here} if here else None
    host.network.bind_port(context, vif.id, host.name, instance.uuid, owner_of(instance), profile)


def _bind_anew(host: Host, context: RequestContext, instance: Instance, vif: Vif) -> None:
    """Binds a port whose binding was deleted. Does nothing if the port no longer belongs to the server."""
    try:
        if PortOwner.of(instance).has(host.network.show_port(context, vif.id)):
            bind_port(host, context, instance, vif)
    except errors.PortNotFound:
        LOG.warning("Port %s of server %s is gone: the guest starts without it", vif.id, instance.uuid)


def refreshed_ports(host: Host, context: RequestContext, instance: Instance) -> list[Vif]:
    """Returns the server's ports as the network service has them now."""
    if not instance.network_info:
        return []
    return host.network.network_info(context, instance)
