"""Passes external events from the API to hosts, and acts on those that concern the records."""

from __future__ import annotations

import logging

import sqlalchemy as sa

from causeway import errors
from causeway.conductor.endpoints import shown_ports
from causeway.context import RequestContext
from causeway.model.events import CHANGED, EXTENDED, HostEvents
from causeway.running.services import ConductorServices
from causeway.store import servers
from causeway.store.cell import block_devices, instances

LOG = logging.getLogger(__name__)


class EventsEndpoint:
    """RPC: external_events."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def external_events(self, context: RequestContext, *, hosts: list[HostEvents]) -> None:
        # First the hosts, because guests may be waiting for the events there.
        for each in hosts:
            self._services.computes(each.cell_uuid).external_instance_events(context, each.host, events=each.events)
        for uuid in sorted({event.server_uuid for each in hosts for event in each.events if event.name == CHANGED}):
            self._refresh_ports(uuid)
        # Both ends of a move hear of it; the record is one.
        extended = {
            (event.server_uuid, event.tag): each for each in hosts for event in each.events if event.name == EXTENDED
        }
        for (uuid, volume_id), each in extended.items():
            if volume_id is not None:
                self._record_size(context, each.cell_uuid, uuid, volume_id)

    def _record_size(self, context: RequestContext, cell_uuid: str, uuid: str, volume_id: str) -> None:
        def write(connection: sa.Connection) -> None:
            instances.touch_in(connection, uuid)
            for device in block_devices.of_instance_in(connection, uuid):
                if device.volume_id == volume_id:
                    block_devices.update_in(connection, device.uuid, volume_size=size)

        try:
            size = self._services.volumes.show_of_server(context, volume_id).size
            servers.change(self._services.cells, uuid, cell_uuid, write)
        except errors.CausewayError as failure:
            LOG.warning(
                "The size of volume %s of server %s was not recorded: %s %s",
                volume_id,
                uuid,
                failure.message,
                failure.details,
            )

    def _refresh_ports(self, uuid: str) -> None:
        try:
            shown_ports.refresh(self._services, uuid)
        except errors.CausewayError as failure:
            LOG.warning(
                "The ports shown for server %s were not updated: %s %s",
                uuid,
                failure.message,
                failure.details,
            )
