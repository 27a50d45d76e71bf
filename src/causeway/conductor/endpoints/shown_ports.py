"""The parts of a server's ports that users see. They are stored in its record, and updated when the network service changes
them.

Only these parts are updated: addresses, floating IPs, the network's name, security groups. The operation that binds a port
decides how it is bound and plugged: a move may be about to undo what the service shows now.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

import sqlalchemy as sa

from causeway import errors
from causeway.model.network import Vif
from causeway.running.services import ConductorServices
from causeway.store import servers
from causeway.store.api import mappings
from causeway.store.cell import instances

LOG = logging.getLogger(__name__)

ATTEMPTS = 5


def refresh(services: ConductorServices, uuid: str) -> None:
    """Reads the server's ports and records changes. Does nothing if the server was deleted, or is in no cell yet."""
    try:
        for _ in range(ATTEMPTS):
            if _refresh(services, uuid):
                return
    except errors.ServerNotFound:
        return
    LOG.info("The ports of server %s change too often: they are updated with the next change", uuid)


def _refresh(services: ConductorServices, uuid: str) -> bool:
    """Returns False if the record was changed while the ports were read: it may be newer than what was read."""
    cell_uuid = mappings.get(services.api, uuid).cell_uuid
    if cell_uuid is None:
        return True
    instance = instances.get(services.cells.database(cell_uuid), uuid, with_tags=False)
    before = instance.network_info
    if not before:
        return True
    seen = services.network.network_info(None, instance, refresh_floating_ips=True)
    if _shown(before, seen) == before:
        return True

    def write(connection: sa.Connection) -> bool:
        if instances.get_in(connection, uuid, with_tags=False).network_info != before:
            return False
        instances.update_in(connection, uuid, network_info=_shown(before, seen))
        return True

    return servers.change(services.cells, uuid, cell_uuid, write)


def _shown(recorded: list[Vif], seen: Iterable[Vif]) -> list[Vif]:
    """The recorded ports, updated with what was read. A port that was not read stays as it is."""
    by_id = {vif.id: vif for vif in seen}
    return [_as_seen(vif, by_id[vif.id]) if vif.id in by_id else vif for vif in recorded]


def _as_seen(vif: Vif, seen: Vif) -> Vif:
    return replace(
        vif,
        network_label=seen.network_label,
        fixed_ips=seen.fixed_ips,
        security_groups=seen.security_groups,
    )
