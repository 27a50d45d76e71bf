"""What users see of a server's ports, kept in its record and brought up to date when the network service changed it.

Only what is shown is taken from there: addresses, floating IPs, the network's name, security groups. How a port is bound and
plugged is up to the operation that binds it: a move may be about to undo what the service shows at this moment.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

import sqlalchemy as sa

from causeway import errors
from causeway.model.network import Vif
from causeway.parts.services import ConductorServices
from causeway.store import servers
from causeway.store.api import mappings
from causeway.store.cell import instances

LOG = logging.getLogger(__name__)

ATTEMPTS = 5


def refresh(services: ConductorServices, uuid: str) -> None:
    """Looks at the server's ports and writes down what changed. A server that is gone, or in no cell yet, is fine."""
    try:
        for _ in range(ATTEMPTS):
            if _refresh(services, uuid):
                return
    except errors.ServerNotFound:
        return
    LOG.info("The ports of server %s change too often: what is shown of them waits for the next change", uuid)


def _refresh(services: ConductorServices, uuid: str) -> bool:
    """False if somebody else wrote of the ports while we looked: theirs may be newer than what we saw."""
    cell_uuid = mappings.get(services.api, uuid).cell_uuid
    if cell_uuid is None:
        return True
    before = instances.get(services.cells.database(cell_uuid), uuid, with_tags=False).network_info
    if not before:
        return True
    seen = services.network.network_info(None, uuid, previous=before, refresh_floating_ips=True)
    if _shown(before, seen) == before:
        return True

    def write(connection: sa.Connection) -> bool:
        if instances.get_in(connection, uuid, with_tags=False).network_info != before:
            return False
        instances.update_in(connection, uuid, network_info=_shown(before, seen))
        return True

    return servers.change(services.cells, uuid, cell_uuid, write)


def _shown(recorded: list[Vif], seen: Iterable[Vif]) -> list[Vif]:
    """The recorded ports with what was seen of them; one that was not seen stays as it is."""
    by_id = {vif.id: vif for vif in seen}
    return [_as_seen(vif, by_id[vif.id]) if vif.id in by_id else vif for vif in recorded]


def _as_seen(vif: Vif, seen: Vif) -> Vif:
    return replace(
        vif,
        network_label=seen.network_label,
        fixed_ips=seen.fixed_ips,
        security_groups=seen.security_groups,
    )
