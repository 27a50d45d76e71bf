"""A cell database of an earlier version gets what is new, and keeps what it has."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from alembic import command

from causeway.model.flavor import Flavor
from causeway.model.host import ComputeNode
from causeway.model.instance import Instance
from causeway.model.pci import PciDevice
from causeway.store import schema
from causeway.store.cell import device_changes, hosts, instances, pci_devices
from causeway.store.database import Database, utcnow


@pytest.fixture
def server(database: Database) -> Instance:
    server = Instance("11111111-1111-1111-1111-111111111111", "project", "user", "old", Flavor("1", "f", 1, 1, 1))
    with database.write() as connection:
        instances.insert(connection, server)
    return server


def upgrade_from(database: Database, revision: str) -> None:
    config = schema._config("cell")
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.stamp(config, revision)
    schema.sync(database, "cell")


def test_columns_of_numa_and_pci_are_added(database: Database, server: Instance) -> None:
    hosts.save_node(database, ComputeNode("node", "host", "host", "simulated", 1, 1, 1, 1))
    with database.write() as connection:
        for table, column in (
            ("instances", "pci_devices"),
            ("compute_nodes", "numa_topology"),
            ("compute_nodes", "pci_stats"),
        ):
            connection.execute(sa.text(f"ALTER TABLE {table} DROP COLUMN {column}"))
        connection.execute(sa.text("DROP TABLE pci_devices"))
    upgrade_from(database, "0001")

    assert instances.get(database, server.uuid).pci_devices == []
    (node,) = hosts.list_nodes(database)
    assert (node.numa_topology, node.pci_stats) == (None, [])
    devices = [PciDevice("0000:81:00.0", "8086", "154d")]
    pci_devices.save(database, "node", devices)
    assert pci_devices.of_node(database, "node") == devices


def test_device_changes_of_an_older_version_are_kept(database: Database, server: Instance) -> None:
    """A change that an older version began is there still; nobody knows what it is about."""
    with database.write() as connection:
        row = {"instance_uuid": server.uuid, "request_id": "req-old", "what": "attach_volume", "started_at": utcnow()}
        connection.execute(device_changes.TABLE.insert(), row)
        for column in ("resource_id", "owner"):
            connection.execute(sa.text(f"ALTER TABLE device_changes DROP COLUMN {column}"))
    upgrade_from(database, "0006")

    (old,) = device_changes.begun_before(database, utcnow())
    assert (old.request_id, old.resource_id) == ("req-old", None)
    assert device_changes.is_left(database, old)
