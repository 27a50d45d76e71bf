"""A cloud of which some was Nova's, as far as its records say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from causeway.model.adoption import AdoptedHost, Finding, HostState
from causeway.store.api import adopted_hosts, adoptions
from causeway.store.api import cells as cell_records
from causeway.store.api.adoptions import Adoption
from causeway.store.database import utcnow

HOST = "cell1-host1"
# What a host may say: text that would be markup, and a character that turns around what follows.
HOSTILE = "<img src=x onerror=alert(1)>\u202e" + "x" * 200
PORT = Finding(
    "port.unknown", "6a5b4c3e-9f51-4c2f-9b7e-117d3c0f0a6a", f"Port {HOSTILE} is unknown.", "Detach <b>it</b>."
)
FOLDER = Finding("folder.unused", HOST, "A folder is of no server.", blocks=False)


@contextmanager
def imported(cloud: Any, findings: list[Finding]) -> Iterator[None]:
    """The first host of cell1 was looked at and found so, its second is taken; in cell2 a host has a hostile name."""
    api = cloud.parts.api_database
    (cell1, cell2) = cloud.parts.cells.mappings(cell0=False)
    cell_records.map_host(api, HOSTILE, cell2.uuid)
    with api.write() as connection:
        adoptions.save_in(connection, [Adoption("key pair", "1", "0" * 64, utcnow())])
        adopted_hosts.save_in(
            connection,
            [
                AdoptedHost(HOST, cell1.uuid, HostState.LOOKED, findings),
                AdoptedHost("cell1-host2", cell1.uuid, HostState.TAKEN),
                AdoptedHost(HOSTILE, cell2.uuid),
            ],
        )
    try:
        yield
    finally:
        cell_records.unmap_host(api, HOSTILE)
        with api.write() as connection:
            for table in (adoptions.TABLE, adopted_hosts.TABLE):
                connection.execute(table.delete())
