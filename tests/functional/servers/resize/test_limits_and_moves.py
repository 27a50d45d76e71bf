"""Unified limits, and usage counted from Placement, in a whole cloud while servers move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openstack import exceptions

from causeway.conf.quota import DB, UNIFIED
from tests.functional.servers.moves_cloud import Cloud

CLOUD: dict[str, Any] = {"overrides": {"quota": {"driver": UNIFIED}, "DEFAULT": {"shelved_offload_time": 0}}}
pytestmark = pytest.mark.embedded("its options are changed")


@pytest.fixture
def limits(cloud: Cloud) -> Iterator[Any]:
    """Registers limits for the compute service."""
    identity = cloud.connection("admin").identity
    service = next(identity.services(type="compute")).id
    made = []

    def register(**amounts: int) -> None:
        for name, amount in amounts.items():
            made.append(
                identity.create_registered_limit(
                    service_id=service,
                    region_id="RegionOne",
                    resource_name=f"class:{name}" if name.isupper() else name,
                    default_limit=amount,
                )
            )

    yield register
    for limit in made:
        identity.delete_registered_limit(limit)


def used(cloud: Cloud) -> tuple[int, int, int]:
    """Servers, cores and memory, as the user sees them."""
    absolute = cloud.member.compute.get("/limits").json()["limits"]["absolute"]
    return absolute["totalInstancesUsed"], absolute["totalCoresUsed"], absolute["totalRAMUsed"]


def flavor_of(cloud: Cloud, name: str) -> tuple[int, int]:
    found = cloud.admin.compute.find_flavor(name)
    return found.vcpus, found.ram


def test_a_server_that_moves_to_another_cell_counts_on_both_sides_until_it_is_confirmed(
    cloud: Cloud, limits: Any
) -> None:
    small, large = flavor_of(cloud, "gen1.small"), flavor_of(cloud, "gen2.small")
    limits(servers=2, VCPU=small[0] + large[0])
    server = cloud.boot()
    assert used(cloud) == (1, *small)
    cloud.resized(server)
    assert used(cloud) == (1, small[0] + large[0], small[1] + large[1])
    with pytest.raises(exceptions.ForbiddenException, match="class:VCPU is over limit of"):
        cloud.boot("another")
    cloud.confirmed(server)
    assert used(cloud) == (1, *large)
    cloud.boot("another")
    with pytest.raises(exceptions.ForbiddenException, match="servers is over limit of 2 due to current usage 2"):
        cloud.boot("a third one")


def test_a_resize_that_does_not_fit_beside_what_is_held_changes_nothing(cloud: Cloud, limits: Any) -> None:
    small, large = flavor_of(cloud, "gen1.small"), flavor_of(cloud, "gen2.small")
    limits(servers=2, VCPU=small[0] + large[0] - 1)
    server = cloud.boot()
    with pytest.raises(exceptions.ForbiddenException, match="class:VCPU is over limit of"):
        cloud.member.compute.resize_server(server, cloud.admin.compute.find_flavor("gen2.small").id)
    assert cloud.show(server).status == "ACTIVE"
    assert used(cloud) == (1, *small)


def test_what_is_offloaded_holds_nothing_and_has_to_fit_again(cloud: Cloud, limits: Any) -> None:
    small = flavor_of(cloud, "gen1.small")
    limits(servers=2, VCPU=small[0])
    server = cloud.boot()
    cloud.member.compute.shelve_server(server)
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()
    assert used(cloud) == (1, 0, 0)
    other = cloud.boot("other")
    with pytest.raises(exceptions.ForbiddenException, match="class:VCPU is over limit of"):
        cloud.member.compute.unshelve_server(server)
    cloud.member.compute.delete_server(other)
    cloud.member.compute.wait_for_delete(other)
    cloud.settle()
    cloud.member.compute.unshelve_server(server)
    cloud.wait(server, "ACTIVE")


def test_local_limits_count_usage_from_placement_during_moves(cloud: Cloud) -> None:
    conf = cloud.embedded.conf
    small, large = flavor_of(cloud, "gen1.small"), flavor_of(cloud, "gen2.small")
    options = {"driver": DB, "count_usage_from_placement": True, "cores": small[0] + large[0]}
    for name, value in options.items():
        conf.set_override(name, value, group="quota")
    try:
        server = cloud.boot()
        cloud.resized(server)
        assert used(cloud) == (1, small[0] + large[0], small[1] + large[1])
        with pytest.raises(exceptions.ForbiddenException, match="Quota exceeded for cores: Requested"):
            cloud.boot("another")
        conf.set_override("count_usage_from_placement", False, group="quota")
        # Our own records count what a server is, once.
        assert used(cloud) == (1, *large)
        conf.set_override("count_usage_from_placement", True, group="quota")
        cloud.reverted(server)
        assert used(cloud) == (1, *small)
    finally:
        for name in options:
            conf.clear_override(name, group="quota")
        conf.set_override("driver", UNIFIED, group="quota")
