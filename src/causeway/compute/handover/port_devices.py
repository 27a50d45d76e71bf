"""A host's part in moving a guest whose ports are devices of its host: they are detached before its memory travels.

A device stays where it is, and nobody can carry its state to another host. So the source detaches these ports as late as it can,
and whoever has the guest afterwards attaches them, with its own devices. The guest itself has another port meanwhile, if it needs
one (a bond, or ``net_failover`` of Linux).
"""

from __future__ import annotations

import dataclasses
import logging

from causeway import errors
from causeway.compute.host import Host
from causeway.compute.host.fence import fenced
from causeway.context import RequestContext
from causeway.hardware.port_devices import of_devices, with_device, without_devices
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.outcomes import OperationToken
from causeway.virt.driver import GuestSpec
from causeway.virt.live_guest import Presence

LOG = logging.getLogger(__name__)

_BETWEEN_HOSTS = (Presence.INCOMING, Presence.PAUSED_FOR_MIGRATION)


def travelling(spec: GuestSpec) -> GuestSpec:
    """Returns the guest as its memory knows it while it travels: without the ports that are devices of a host."""
    return dataclasses.replace(spec, vifs=without_devices(spec.vifs))


class PortDevicesEndpoint:
    """RPC: detaches such ports and attaches them."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.fence = host.fence

    @fenced
    def detach_port_devices(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,  # noqa: ARG002 - `fenced` looks at it
        instance: Instance,
    ) -> None:
        host = self.host
        with host.lock(instance.uuid):
            for vif in of_devices(instance.network_info):
                host.driver.detach_interface(instance.uuid, _with_claimed(host, instance, vif))

    @fenced
    def attach_port_devices(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: OperationToken,  # noqa: ARG002 - `fenced` looks at it
        instance: Instance,
    ) -> None:
        """Tries all ports, and raises the first error afterwards. Does nothing without a guest: it is made with its ports."""
        with self.host.lock(instance.uuid):
            _attach_all(self.host, instance)

    def attach_missing_port_devices(self, context: RequestContext, *, instance: Instance) -> None:  # noqa: ARG002
        with self.host.lock(instance.uuid):
            _attach_all(self.host, instance)


def _attach_all(host: Host, instance: Instance) -> None:
    """Attaches the ports of a guest that are devices of the host, with those that the host has claimed for them."""
    shown = host.driver.presence(instance.uuid)
    if shown is Presence.ABSENT:
        return
    if shown in _BETWEEN_HOSTS:
        raise errors.GuestUnclear(
            f"The guest of server {instance.uuid} is between two hosts: no port is attached to it.",
            details=f"host {host.name} shows it {shown}",
        )
    failures: list[errors.CausewayError] = []
    for vif in of_devices(instance.network_info):
        try:
            host.driver.attach_interface(instance.uuid, _with_claimed(host, instance, vif, needed=True))
        except errors.CausewayError as failure:
            LOG.warning("Port %s of server %s is not attached: %s", vif.id, instance.uuid, failure.message)
            failures.append(failure)
    if failures:
        raise failures[0]


def _with_claimed(host: Host, instance: Instance, vif: Vif, *, needed: bool = False) -> Vif:
    """Returns the port with the device that the host holds for it, whatever the order says.

    Raises ClaimRefused if it holds none and one is ``needed``, ClaimsUnknown while it does not know.
    """
    device = host.claims.device_of_port(instance.uuid, vif.id)
    if device is None and needed:
        raise errors.ClaimRefused(
            f"The host of server {instance.uuid} holds no device for port {vif.id}.", details=f"host {host.name}"
        )
    return dataclasses.replace(vif, profile=with_device(vif.profile, device))
