"""Imports and takes of hosts, in PostgreSQL and MariaDB: who writes the servers of a host holds the host's state."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from causeway.model.adoption import AdoptedHost, HostState
from causeway.store import schema
from causeway.store.api import adopted_hosts
from causeway.store.database import Database

CELL = "6b1c5f0e-0000-4000-8000-000000000001"


def test_a_host_whose_servers_are_written_is_taken_afterwards(new_database: Callable[[str], str]) -> None:
    with closing(Database(new_database("adopted_hosts"), "the API")) as api, ThreadPoolExecutor(2) as takers:
        schema.sync(api, "api")
        with api.write() as connection:
            adopted_hosts.save_in(
                connection, [AdoptedHost("a", CELL), AdoptedHost("b", CELL), AdoptedHost("c", CELL, HostState.TAKEN)]
            )

        def take(host: str) -> None:
            adopted_hosts.save(api, AdoptedHost(host, CELL, HostState.TAKING))

        with api.write() as connection:
            assert adopted_hosts.hold_in(connection, ["a", "c", "unknown"]) == {"c"}
            waits = takers.submit(take, "a")
            takers.submit(take, "b").result(timeout=30)
            with pytest.raises(TimeoutError):
                waits.result(timeout=0.5)
        waits.result(timeout=30)
        assert adopted_hosts.owned(api) == {"a", "b", "c"}
