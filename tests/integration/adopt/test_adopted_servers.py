"""Servers that Nova made, on hosts that Causeway took over: their guests run as Nova started them until they are moved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.adopt import outside
from tests.integration.adopt.adopted_cloud import AdoptedCloud, adopted_cloud
from tests.integration.adopt.answers import await_status
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.population import Population

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def taken(cloud: NovaCloud, population: Population) -> Iterator[AdoptedCloud]:  # noqa: ARG001
    """All hosts are ours, and the catalog has our API."""
    with adopted_cloud(cloud, "taken") as adopted:
        before = outside.guests(cloud)
        adopted.take(*cloud.nova.hosts)
        outside.check_same_runs(before, outside.guests(cloud))
        adopted.point_catalog(f"{adopted.api_url}/v2.1")
        yield adopted
        adopted.point_catalog(cloud.nova.url)


def test_a_server_moves_to_another_cell_and_back_with_disk_volume_and_ports(
    cloud: NovaCloud, population: Population, taken: AdoptedCloud
) -> None:
    uuid, compute = population.servers["datavol"], taken.admin.compute
    volume = outside.volume_file(cloud, population.volumes["datavol"])
    content, had, here = outside.digest(volume), taken.ports(uuid), outside.guest_of(cloud, uuid).host
    lines = outside.ticks(cloud, uuid)[-1].lines

    compute.resize_server(uuid, "gen2.small")
    there = await_status(taken.admin, uuid, "VERIFY_RESIZE").compute_host
    assert (cloud.nova.hosts[here], cloud.nova.hosts[there]) == ("cell1", "cell2")
    outside.await_lines(cloud, uuid, lines)
    assert taken.ports(uuid) == had
    assert [each.volume_id for each in compute.volume_attachments(uuid)] == [population.volumes["datavol"]]
    assert outside.digest(volume) == content

    compute.revert_server_resize(uuid)
    assert await_status(taken.admin, uuid, "ACTIVE").compute_host == here
    outside.await_lines(cloud, uuid, lines)
    assert taken.ports(uuid) == had
    assert outside.digest(volume) == content


def test_a_guest_that_nova_started_moves_live_to_another_host_and_back(
    cloud: NovaCloud, population: Population, taken: AdoptedCloud
) -> None:
    uuid = population.servers["active"]
    here = outside.guest_of(cloud, uuid).host
    for target in (cloud.nova.neighbour(here), here):
        number = outside.ticks(cloud, uuid)[-1].number
        taken.admin.compute.live_migrate_server(uuid, host=target, block_migration="auto")
        assert await_status(taken.admin, uuid, "ACTIVE").compute_host == target
        tick = outside.await_tick(cloud, uuid, number)
        # It counts in its memory: a guest that was started again would begin with 1.
        assert tick.lines == tick.number
