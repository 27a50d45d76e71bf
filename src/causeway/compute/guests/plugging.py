"""Waits until the network service has plugged the ports of a guest: before it starts, before it arrives live, and after that.

A port that its owner has switched off is never plugged, so nobody waits for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from causeway import errors
from causeway.clients.port_owners import PortOwner
from causeway.compute.guests.guest import owner_of
from causeway.compute.host import Host
from causeway.compute.host.vif_events import Watch
from causeway.context import admin_context
from causeway.hardware.port_plugs import Plug, is_of_agent, is_wired_before_activation, plug_of
from causeway.model.instance import Instance
from causeway.model.network import Vif

# Seconds: what waits for ports, and happens without them too, waits no longer.
PATIENCE = 10
# Ports of which each network service that plugs them says when they are. Who connects a `Plug.TAP` may never say so.
_REPORTED = frozenset(Plug) - {Plug.TAP}


def before_start(host: Host, watch: Watch, vifs: list[Vif]) -> Callable[[], AbstractContextManager[None]]:
    """Returns a function that makes the context in which the driver waits for ports that are not plugged yet."""
    waiting = [vif.id for vif in vifs if not vif.active]

    def context() -> AbstractContextManager[None]:
        return watch.plugged(
            waiting,
            host.conf.vif_plugging_timeout,
            fatal=host.conf.vif_plugging_is_fatal,
            look=partial(_plugged_here, host, watch.instance_uuid, waiting),
        )

    return context


def before_arrival(host: Host, watch: Watch, instance: Instance) -> AbstractContextManager[None]:
    """A context in which the driver plugs the ports of a guest that will arrive live; at its end they are wired.

    Only those are waited for of which the network service says so before the guest is here, and not those that were deleted
    meanwhile. Raises VifPluggingFailed.
    """
    waiting = [vif for vif in instance.network_info if is_wired_before_activation(vif.vif_type, vif.details)]
    # Neutron takes a port down when it learns where the guest is going. OVN's comes up when it is wired there, or at once if
    # Neutron counts on no tap device (`ovs_create_tap`). One of agents stays down: only their message says that it is wired.
    of_agents = [vif.id for vif in waiting if is_of_agent(vif.details)]
    shown = frozenset(vif.id for vif in waiting).difference(of_agents)

    def look() -> set[str]:
        found = set()
        for port_id in of_agents:
            # The message may be lost, or have come before this order was given again. The agent looks at a port that is updated
            # once more, and says again that it is wired.
            try:
                port = host.network.update_port(admin_context(), port_id, {"device_owner": owner_of(instance)})
            except errors.PortNotFound:
                found.add(port_id)
            else:
                found |= {port_id} if _is_off(port) else set()
        if shown:
            ports = host.network.ports_of_server(admin_context(), PortOwner(instance.uuid, "", shown))
            found |= shown - {port["id"] for port in ports if not (_is_up(port) or _is_off(port))}
        return found

    conf = host.conf
    timeout = conf.vif_plugging_timeout if conf.compute.live_migration_wait_for_vif_plug else 0
    names = [vif.id for vif in waiting]
    return watch.plugged(names, timeout, fatal=conf.vif_plugging_is_fatal, look=look, shown=shown)


def after_arrival(host: Host, watch: Watch, vifs: list[Vif]) -> list[Vif]:
    """The ports of a guest that has arrived live, as they are when they were wired, or when nobody waits for that any longer.

    The guest runs meanwhile. Only those are waited for that a network service is known to report.
    """
    waiting = [vif.id for vif in vifs if not vif.active and plug_of(vif.vif_type, vif.details) in _REPORTED]
    timeout = min(PATIENCE, host.conf.vif_plugging_timeout)
    with watch.plugged(waiting, timeout, fatal=False, look=partial(_plugged_here, host, watch.instance_uuid, waiting)):
        pass
    return as_plugged(watch, vifs, True)


def anew(watch: Watch, vifs: list[Vif]) -> Callable[[], AbstractContextManager[None]]:
    """As `before_start`, for ports of Open vSwitch and OVN that are plugged once more because their host was off.

    The network service may show them as up all the time, and not every one says once more that they are. So only its message
    counts, nobody waits for long, and the guest starts in any case.
    """
    waiting = [vif.id for vif in vifs if is_wired_before_activation(vif.vif_type, vif.details)]
    return partial(watch.plugged, waiting, PATIENCE, fatal=False)


def as_plugged(watch: Watch, vifs: list[Vif], is_on: bool) -> list[Vif]:
    """The ports of a guest that was made, after all waits for them. ``is_on``: the guest is not off."""
    return [dataclasses.replace(vif, active=vif.active or (is_on and vif.id not in watch.unplugged)) for vif in vifs]


def not_awaited(vifs: list[Vif]) -> list[Vif]:
    """The ports of a guest that runs already. A port may be down for a moment when it is taken over once more."""
    return [dataclasses.replace(vif, active=True) for vif in vifs]


def _plugged_here(host: Host, server_uuid: str, port_ids: Iterable[str]) -> set[str]:
    ports = host.network.ports_of_server(admin_context(), PortOwner(server_uuid, "", frozenset(port_ids)))
    return {
        port["id"] for port in ports if _is_off(port) or (_is_up(port) and port.get("binding:host_id") == host.name)
    }


def _is_up(port: Mapping[str, Any]) -> bool:
    return bool(port["status"] == "ACTIVE")


def _is_off(port: Mapping[str, Any]) -> bool:
    """Whether somebody has switched the port off."""
    return port.get("admin_state_up") is False
