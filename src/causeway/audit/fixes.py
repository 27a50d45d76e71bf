"""Fixes what is safe. Before each fix it checks once more that nobody works on the server by now."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from causeway import errors
from causeway.audit.services import AuditServices
from causeway.context import admin_context
from causeway.hardware.port_devices import with_device
from causeway.hosts.disabling import HostRecords, enable_if_disabled_for
from causeway.hosts.liveness import BINARY
from causeway.model.audit import Disagreement
from causeway.model.states import TaskState
from causeway.moves.hardware import with_old
from causeway.store import mapping_facts
from causeway.store.api import build_requests, journal, mappings
from causeway.store.api import cells as cell_records
from causeway.store.cell import actions, copies, hosts, instances
from causeway.store.database import utcnow

LOG = logging.getLogger(__name__)

# Fixes that are about the work itself, or don't delete anything that it uses.
WHATEVER_THE_TASK = frozenset({"clear_task_state", "end_event", "delete_image", "delete_build_request"})


def apply(services: AuditServices, disagreements: list[Disagreement]) -> list[Disagreement]:
    """Applies the fixes of disagreements; returns the fixed ones. In the others, ``left`` says why they were not fixed."""
    fixed = []
    for disagreement in disagreements:
        if disagreement.fix is None:
            continue
        try:
            _guard(services, disagreement)
            ACTIONS[disagreement.fix.action](services, **disagreement.fix.arguments)
        except errors.CausewayError as failure:
            disagreement.left = f"Not fixed: {failure.message}"
            LOG.warning("Audit: %s was not fixed: %s %s", disagreement.kind, failure.message, failure.details)
            continue
        LOG.warning("Audit: fixed by %s: %s", disagreement.fix.action, disagreement.message)
        fixed.append(disagreement)
    return fixed


def _guard(services: AuditServices, disagreement: Disagreement) -> None:
    """Raises StateChanged if somebody works on the server by now."""
    server = disagreement.server
    if server is None or disagreement.fix is None:
        return
    if journal.active_of_server(services.api, server) is not None:
        raise errors.StateChanged("A move of the server has begun in the meantime.")
    if disagreement.fix.action in WHATEVER_THE_TASK:
        return
    try:
        _cell, database = services.cells.of_server(server)
        instance = instances.get(database, server)
    except errors.ServerNotFound:
        return
    if instance.task_state is not None:
        raise errors.StateChanged(f"Somebody works on the server: its task state is {instance.task_state}.")


def _set_allocation(
    services: AuditServices,
    *,
    consumer: str,
    allocations: dict[str, dict[str, int]],
    project_id: str,
    user_id: str,
) -> None:
    known = services.placement.get_allocations(consumer)
    services.placement.set_allocations(consumer, allocations, project_id, user_id, known=known)


def _delete_allocation(services: AuditServices, *, consumer: str) -> None:
    services.placement.delete_allocations(consumer)


def _delete_consumer(services: AuditServices, *, consumer: str, project_id: str, user_id: str) -> None:
    services.placement.delete_hidden(consumer, project_id, user_id)


def _return_allocation(services: AuditServices, *, server: str, migration: str) -> None:
    services.placement.return_allocations(server, migration)


def _delete_binding(services: AuditServices, *, port_id: str, host: str) -> None:
    services.network.delete_binding(admin_context(), port_id, host)


def _activate_binding(services: AuditServices, *, port_id: str, host: str) -> None:
    services.network.activate_binding(admin_context(), port_id, host)


def _undo_announcement(services: AuditServices, *, port_id: str, host: str) -> None:
    ours = admin_context()
    services.network.undo_announcement(ours, [services.network.show_port(ours, port_id)], host)


def _create_binding(
    services: AuditServices,
    *,
    port_id: str,
    host: str,
    vnic_type: str = "normal",
    profile: dict[str, Any] | None = None,
) -> None:
    services.network.create_binding(admin_context(), port_id, host, vnic_type, profile)


def _name_device(services: AuditServices, *, port_id: str, host: str, profile: dict[str, Any]) -> None:
    """Writes to the port's binding which device it has on its host."""
    port = services.network.show_port(admin_context(), port_id)
    if port.get("binding:host_id") != host:
        raise errors.StateChanged(f"The port is not bound to {host} any more.")
    kept = with_device(port.get("binding:profile") or {}, None)
    services.network.update_port(admin_context(), port_id, {"binding:profile": kept | profile})


def _delete_attachment(services: AuditServices, *, attachment_id: str) -> None:
    try:
        attachment = services.volumes.get_attachment(admin_context(), attachment_id)
    except errors.VolumeNotFound:
        return
    if attachment.is_connected:
        raise errors.InvalidState("A host has connected through the attachment in the meantime.")
    services.volumes.delete_attachment(admin_context(), attachment_id)


def _delete_image(services: AuditServices, *, image_id: str) -> None:
    services.images.delete(admin_context(), image_id)


def _delete_copy(services: AuditServices, *, uuid: str, cell_uuid: str) -> None:
    database = services.cells.database(cell_uuid)
    instance = instances.find(database, uuid)
    if instance is not None and not instance.hidden:
        raise errors.StateChanged("The copy is not hidden any more.")
    home, home_database = services.cells.of_server(uuid)
    if home.uuid == cell_uuid or instances.find(home_database, uuid) is None:
        raise errors.StateChanged("The copy is the only record of the server.")
    copies.hard_delete(database, uuid)


def _set_hidden(services: AuditServices, *, uuid: str, cell_uuid: str, hidden: bool) -> None:
    lives_there = mappings.get(services.api, uuid).cell_uuid == cell_uuid
    if lives_there is hidden:
        raise errors.StateChanged("The server's mapping was changed in the meantime.")
    instances.set_hidden(services.cells.database(cell_uuid), uuid, hidden=hidden)


def _complete_mapping(services: AuditServices, *, uuid: str) -> None:
    mapping_facts.correct(services.cells, uuid)


def _delete_build_request(services: AuditServices, *, uuid: str) -> None:
    build_requests.delete(services.api, uuid)


def _clear_task_state(services: AuditServices, *, uuid: str, cell_uuid: str, task_state: str) -> None:
    database = services.cells.database(cell_uuid)
    instances.update(database, uuid, expected_task={TaskState(task_state)}, task_state=None)


def _end_event(services: AuditServices, *, cell_uuid: str, event_id: int) -> None:
    values = {"finish_time": utcnow(), "result": "Error", "details": "It was interrupted: nobody works on it."}
    statement = actions.EVENTS.update().where(actions.EVENTS.c.id == event_id, actions.EVENTS.c.finish_time.is_(None))
    action_of_event = sa.select(actions.EVENTS.c.action_id).where(actions.EVENTS.c.id == event_id).scalar_subquery()
    with services.cells.database(cell_uuid).write() as connection:
        connection.execute(statement.values(values))
        connection.execute(
            actions.ACTIONS.update()
            .where(actions.ACTIONS.c.id == action_of_event)
            .values(message="Error", updated_at=utcnow())
        )


def _remove_disks(services: AuditServices, *, host: str, uuid: str, stashed: bool) -> None:
    computes = services.computes(cell_records.cell_of_host(services.api, host))
    computes.remove_leftover_disks(admin_context(), host, instance_uuid=uuid, stashed=stashed)


def _remove_from_storage(services: AuditServices, *, host: str, name: str) -> None:
    services.computes(cell_records.cell_of_host(services.api, host)).remove_from_storage(
        admin_context(), host, name=name
    )


def _remove_file(services: AuditServices, *, host: str, name: str) -> None:
    computes = services.computes(cell_records.cell_of_host(services.api, host))
    computes.remove_leftover_file(admin_context(), host, name=name)


def _remove_claim(services: AuditServices, *, host: str, uuid: str, migration_uuid: str | None) -> None:
    computes = services.computes(cell_records.cell_of_host(services.api, host))
    computes.remove_leftover_claim(admin_context(), host, instance_uuid=uuid, migration_uuid=migration_uuid)


def _restore_claim(
    services: AuditServices, *, host: str, uuid: str, cell_uuid: str, migration_uuid: str | None, kept: bool
) -> None:
    instance = instances.get(services.cells.database(cell_uuid), uuid)
    computes = services.computes(cell_records.cell_of_host(services.api, host))
    computes.restore_claim(
        admin_context(), host, instance=with_old(instance) if kept else instance, migration_uuid=migration_uuid
    )


def _attach_ports(services: AuditServices, *, uuid: str) -> None:
    cell, database = services.cells.of_server(uuid)
    instance = instances.get(database, uuid)
    services.computes(cell.uuid).attach_missing_port_devices(admin_context(), instance.host or "", instance=instance)


def _open_host(services: AuditServices, *, host: str, reason: str) -> None:
    cell_uuid = cell_records.cell_of_host(services.api, host)
    records = HostRecords(services.api, services.placement, cell_uuid, services.cells.database(cell_uuid))
    for service in hosts.list_services(records.database, host=host, binary=BINARY):
        enable_if_disabled_for(records, service, reason)


Action = Callable[..., None]

ACTIONS: dict[str, Action] = {
    "set_allocation": _set_allocation,
    "delete_allocation": _delete_allocation,
    "delete_consumer": _delete_consumer,
    "return_allocation": _return_allocation,
    "delete_binding": _delete_binding,
    "activate_binding": _activate_binding,
    "create_binding": _create_binding,
    "undo_announcement": _undo_announcement,
    "name_device": _name_device,
    "delete_attachment": _delete_attachment,
    "delete_image": _delete_image,
    "delete_copy": _delete_copy,
    "set_hidden": _set_hidden,
    "complete_mapping": _complete_mapping,
    "delete_build_request": _delete_build_request,
    "clear_task_state": _clear_task_state,
    "end_event": _end_event,
    "remove_disks": _remove_disks,
    "remove_file": _remove_file,
    "remove_from_storage": _remove_from_storage,
    "remove_claim": _remove_claim,
    "restore_claim": _restore_claim,
    "attach_ports": _attach_ports,
    "open_host": _open_host,
}
