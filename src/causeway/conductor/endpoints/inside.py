"""Requests to guests themselves: diagnostics, consoles, crash dumps, trims, passwords."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

from causeway import errors
from causeway.conductor.endpoints.power import notify
from causeway.context import RequestContext
from causeway.model import server_actions
from causeway.model.console import ConsoleAddress, ConsolePlace, ConsoleType
from causeway.model.diagnostics import Diagnostics
from causeway.model.instance import Instance
from causeway.model.server_actions import ServerAction
from causeway.running.services import ConductorServices
from causeway.store import history
from causeway.store.cell import instances


class InsideEndpoint:
    """RPC: diagnostics, consoles, crash dumps, trims, passwords. The API has checked the server's state."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def get_diagnostics(self, context: RequestContext, *, instance_uuid: str) -> Diagnostics:
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        host = _host_of(instances.get(database, instance_uuid))
        return services.computes(cell.uuid).get_diagnostics(context, host, instance_uuid=instance_uuid)

    def get_console(self, context: RequestContext, *, instance_uuid: str, console_type: ConsoleType) -> ConsolePlace:
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        host = _host_of(instances.get(database, instance_uuid))
        address = services.computes(cell.uuid).get_console(
            context, host, instance_uuid=instance_uuid, console_type=console_type
        )
        check_console(host, address, services.conf.console.host_networks)
        return ConsolePlace(address, cell.uuid, host)

    def trigger_crash_dump(self, context: RequestContext, *, instance_uuid: str) -> None:
        services, action = self._services, server_actions.TRIGGER_CRASH_DUMP
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        host = instance.host or ""
        notify(services, context, instance, action, "start")
        try:
            with history.event_beside_move(services.cells, cell.uuid, context, instance_uuid, action.event, host):
                services.computes(cell.uuid).trigger_crash_dump(context, host, instance_uuid=instance_uuid)
        except errors.CausewayError as failure:
            history.add_fault_beside_move(services.cells, cell.uuid, instance_uuid, failure, instance.host)
            return
        notify(services, context, instance, action, "end")

    def trim_guest(self, context: RequestContext, *, instance_uuid: str) -> None:
        services, action = self._services, server_actions.GUEST_TRIM
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        host = instance.host or ""
        try:
            with history.event_beside_move(services.cells, cell.uuid, context, instance_uuid, action.event, host):
                _refuse_other_work(instance, action)
                services.computes(cell.uuid).trim_guest(context, host, instance=instance)
        except errors.CausewayError as failure:
            history.add_fault_beside_move(services.cells, cell.uuid, instance_uuid, failure, instance.host)

    def set_admin_password(self, context: RequestContext, *, instance_uuid: str, password: str) -> None:
        """Sets the password while the requester waits. The server's task ends in any case."""
        services, action = self._services, server_actions.CHANGE_PASSWORD
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid)
        host = instance.host or ""
        if instance.task_state not in action.meanwhile:
            raise errors.StateChanged(f"Server {instance_uuid} was deleted or reset before its password was set.")
        try:
            with history.event(database, context, instance_uuid, action.event, host):
                services.computes(cell.uuid).set_admin_password(context, host, instance=instance, password=password)
        except errors.CausewayError as failure:
            history.fail(database, instance_uuid, failure, instance.host, action.meanwhile)
            raise
        instances.update(database, instance_uuid, expected_task=set(action.meanwhile), task_state=None)


def _refuse_other_work(instance: Instance, action: ServerAction) -> None:
    """Raises InvalidState if other work on the server has begun since the request of an action that gives it no task."""
    if action.task is not None and instance.task_state not in action.task:
        raise errors.InvalidState.for_action(action.name, instance.uuid, "task_state", instance.task_state)


def check_console(host: str, answered: ConsoleAddress, networks: Sequence[IPv4Network | IPv6Network]) -> None:
    """Raises AnswerRefused if a host names an address for a console that is in none of the networks. No networks: any is right.

    Names are refused, because whoever answers for them could name another address when the proxy asks.
    """
    if not networks:
        return
    try:
        address = ip_address(answered.host)
    except ValueError:
        address = None
    if address is None or not any(address in network for network in networks):
        listed = ", ".join(map(str, networks))
        what = f"{answered.host[:80]!r}, which is no address in [console] host_networks ({listed})"
        raise errors.AnswerRefused(host, "get_console", what)


def _host_of(instance: Instance) -> str:
    if not instance.host:
        raise errors.InvalidState(f"Instance {instance.uuid} is not ready: it has no host.")
    return instance.host
