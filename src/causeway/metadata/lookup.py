"""The data of a server's guest, read where the server lives, and remembered for some seconds.

The mapping is read for every request, with one statement: so the data changes at once when a move switches the mapping, and a
deleted server gets nothing more. Everything else is up to ``[api] metadata_cache_expiration`` seconds old.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

from causeway import errors
from causeway.guest_data.facts import ServerFacts, host_name
from causeway.metadata.callers import Caller
from causeway.metadata.services import MetadataServices
from causeway.store.api import mappings
from causeway.store.cell import block_devices, instances

# The most servers that are remembered: a server's user data may have 64 KiB.
MOST_REMEMBERED = 500
# A server that changes cells between the reading of its mapping and of its row is looked up again.
ATTEMPTS = 3


@dataclass(frozen=True)
class _Remembered:
    facts: ServerFacts
    cell_uuid: str
    until: float


class Lookup:
    """Shared by all threads."""

    def __init__(self, services: MetadataServices) -> None:
        self._services = services
        self._lock = threading.Lock()
        self._remembered: OrderedDict[str, _Remembered] = OrderedDict()

    def facts(self, caller: Caller) -> ServerFacts:
        """The guest's data. Raises ServerNotFound if there is no such server in that project, and what databases raise."""
        uuid = caller.server_id
        for _ in range(ATTEMPTS):
            cell_uuid = self.home(caller)
            found = self._recall(uuid, cell_uuid) or self._read(uuid, cell_uuid)
            if found is not None:
                return found
        raise errors.ServerNotFound(uuid)

    def home(self, caller: Caller) -> str:
        """The cell of the server that asks; raises ServerNotFound."""
        mapping = mappings.get(self._services.api, caller.server_id)
        if mapping.queued_for_delete or mapping.cell_uuid is None or mapping.project_id != caller.project_id:
            raise errors.ServerNotFound(caller.server_id)
        return mapping.cell_uuid

    def discard(self, uuid: str) -> None:
        with self._lock:
            self._remembered.pop(uuid, None)

    def _recall(self, uuid: str, cell_uuid: str) -> ServerFacts | None:
        with self._lock:
            found = self._remembered.get(uuid)
        if found is None or found.cell_uuid != cell_uuid or found.until < time.monotonic():
            return None
        return found.facts

    def _read(self, uuid: str, cell_uuid: str) -> ServerFacts | None:
        """None if the cell does not have the server (any more)."""
        services, began = self._services, time.monotonic()
        database = services.cells.database(cell_uuid)
        instance = instances.find(database, uuid, with_tags=False)
        if instance is None:
            return None
        domain: str = services.conf.api.dhcp_domain
        facts = ServerFacts(
            instance,
            instance.network_info,
            block_devices.of_instance(database, uuid),
            domain,
            services.vendordata.static(),
            partial(services.vendordata.dynamic, instance, host_name(instance, domain)),
        )
        seconds: int = services.conf.api.metadata_cache_expiration
        if seconds:
            with self._lock:
                self._remembered[uuid] = _Remembered(facts, cell_uuid, began + seconds)
                self._remembered.move_to_end(uuid)
                while len(self._remembered) > MOST_REMEMBERED:
                    self._remembered.popitem(last=False)
        return facts
