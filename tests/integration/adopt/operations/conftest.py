"""One cloud for all tests of this folder: it takes minutes until Nova has made the servers and their hosts are taken over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.integration.adopt import outside
from tests.integration.adopt.adopted_cloud import adopted_cloud
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.operations.taken import WANTED, TakenCloud
from tests.integration.adopt.population import Populator


@pytest.fixture(scope="package")
def taken(cloud: NovaCloud, populator: Populator) -> Iterator[TakenCloud]:
    """All hosts are ours, and the catalog has our API. In the end the servers are gone."""
    # Many guests that count every second would keep the machine busy.
    population = populator.make(WANTED, seconds=3)
    with adopted_cloud(cloud, "every") as adopted:
        before = outside.guests(cloud)
        adopted.take(*cloud.nova.hosts)
        outside.check_same_runs(before, outside.guests(cloud))
        adopted.point_catalog(f"{adopted.api_url}/v2.1")
        taken = TakenCloud(cloud, populator, population, adopted)
        yield taken
        taken.delete_all()
        adopted.point_catalog(cloud.nova.url)
    # All hosts are Nova's again.
    with closing(cloud.nova.connection()) as theirs:
        left = {server.id: server.name for server in theirs.compute.servers()}
    assert left.keys().isdisjoint(population.servers.values()), left
