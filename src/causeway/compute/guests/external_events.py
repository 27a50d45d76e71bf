"""Events of other services that concern servers of this host."""

from __future__ import annotations

import logging

from causeway import errors
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.events import EXTENDED, ExternalEvent

LOG = logging.getLogger(__name__)
_GIB = 2**30


class EventsEndpoint:
    """RPC: delivers external events to threads that wait for them, and has guests see that their volumes are larger."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def external_instance_events(self, context: RequestContext, *, events: list[ExternalEvent]) -> None:
        for event in events:
            if event.name == EXTENDED and event.tag is not None:
                self._extend(context, event.server_uuid, event.tag)
            elif not self._host.vif_events.deliver(event):
                LOG.debug("Nobody on %s waits for %s of server %s", self._host.name, event.name, event.server_uuid)

    def _extend(self, context: RequestContext, uuid: str, volume_id: str) -> None:
        """How large it is, and whether the server has it, is what the volume service says: the event may come late, or again."""
        volumes = self._host.volumes
        try:
            volume = volumes.show_of_server(context, volume_id)
            for each in volume.attachments:
                if each.get("server_id") != uuid:
                    continue
                info = volumes.get_attachment(context, each["attachment_id"]).connection_info
                device = BlockDevice(
                    uuid=each["attachment_id"],
                    instance_uuid=uuid,
                    source_type="volume",
                    destination_type="volume",
                    volume_id=volume_id,
                    connection_info=info or None,
                )
                with self._host.lock(uuid):
                    self._host.driver.extend_volume(uuid, device, volume.size * _GIB)
        except errors.CausewayError as failure:
            LOG.warning(
                "Server %s sees the new size of volume %s from its next start on: %s %s",
                uuid,
                volume_id,
                failure.message,
                failure.details,
            )
