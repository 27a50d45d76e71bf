from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from causeway.clients.placement import Inventory, PlacementClient
from causeway.embedded.placement.local import LocalPlacement, local_placement


def new_uuid() -> str:
    return str(uuid.uuid4())


@pytest.fixture(scope="module")
def placement(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPlacement]:
    """The real Placement on a database of its own."""
    directory: Path = tmp_path_factory.mktemp("placement")
    service = local_placement(directory / "placement.sqlite")
    yield service
    service.close()


@pytest.fixture
def client(placement: LocalPlacement) -> PlacementClient:
    """A client that remembers nothing yet."""
    return placement.client()


class Hosts:
    """Makes providers that are removed from everybody's way when the test ends."""

    def __init__(self, client: PlacementClient) -> None:
        self._client = client
        self.made: list[str] = []

    def __call__(self, vcpus: int = 8, memory_mb: int = 4096, disk_gb: int = 100) -> str:
        host = new_uuid()
        self._client.ensure_provider(host, f"host-{host}")
        self._client.set_inventory(
            host, {"VCPU": Inventory(vcpus), "MEMORY_MB": Inventory(memory_mb), "DISK_GB": Inventory(disk_gb)}
        )
        self.made.append(host)
        return host


@pytest.fixture
def make_host(placement: LocalPlacement) -> Iterator[Hosts]:
    client = placement.client()
    hosts = Hosts(client)
    yield hosts
    for host in hosts.made:
        client.delete_provider(host, cascade=True)
