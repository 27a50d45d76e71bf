"""A slow conductor claims a host after another one has ended its operation, and the user has requested something else since."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.conductor.service import ConductorService
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.slow_conductors import SHORT_LEASES, Hold, proceed, take_over_at

CLOUD = SHORT_LEASES
pytestmark = [pytest.mark.embedded("a thread of this process is held"), pytest.mark.usefixtures("other")]


@pytest.fixture
def hold(at_point: Any) -> Callable[[], Hold]:
    return lambda: Hold(at_point, "rpc.scheduler.select_destinations.request")


def then(cloud: Cloud, server: Any, request: str) -> None:
    """What the server's user requests when the operation has ended."""
    compute = cloud.member.compute
    if request == "delete":
        compute.delete_server(server.id)
        compute.wait_for_delete(server)
    elif request == "shelve":
        compute.shelve_server(server.id)
        cloud.wait(server, "SHELVED_OFFLOADED")
    elif request != "nothing":
        {"confirm": compute.confirm_server_resize, "revert": compute.revert_server_resize}[request](server.id)
        cloud.wait(server, "ACTIVE")
    cloud.settle()


def wakes(cloud: Cloud, other: ConductorService, hold: Hold, server: Any) -> None:
    """Nothing that the slow conductor does then stays."""
    before = disagreements(cloud, server)
    proceed(cloud, other, hold)
    until(lambda: disagreements(cloud, server), lambda found: found == before, "the late claim to be undone")


def disagreements(cloud: Cloud, server: Any) -> list[Any]:
    """What `causeway audit` says of a server."""
    return [each for each in audit_embedded(cloud.parts, pause=0.01).disagreements if each.server == server.id]


@pytest.mark.parametrize("request_then", ["confirm", "revert", "delete"])
def test_a_late_claim_of_a_resize_is_undone(
    cloud: Cloud, hold: Any, other: ConductorService, request_then: str
) -> None:
    server, held = cloud.boot(), hold()
    cloud.member.compute.resize_server(server.id, cloud.flavor("gen1.late", gen=1))
    take_over_at(cloud, other, held, server.id)
    cloud.wait(server, "VERIFY_RESIZE")
    then(cloud, server, request_then)
    wakes(cloud, other, held, server)


@pytest.mark.parametrize("request_then", ["nothing", "delete", "shelve"])
def test_a_late_claim_of_a_live_migration_is_undone(
    cloud: Cloud, hold: Any, other: ConductorService, request_then: str
) -> None:
    server, held = cloud.boot(), hold()
    with ThreadPoolExecutor(1) as users:
        # The answer waits for the choice of the host.
        users.submit(cloud.admin.compute.live_migrate_server, server.id, host=None, block_migration="auto")
        take_over_at(cloud, other, held, server.id)
        cloud.settle()
    then(cloud, server, request_then)
    wakes(cloud, other, held, server)


@pytest.mark.parametrize("request_then", ["nothing", "delete", "shelve"])
def test_a_late_claim_of_an_evacuation_is_undone(
    cloud: Cloud, hold: Any, other: ConductorService, dead: Callable[..., None], request_then: str
) -> None:
    server = cloud.boot(flavor="any.small")
    dead(cloud.show(server).compute_host)
    held = hold()
    cloud.admin.compute.evacuate_server(server.id)
    take_over_at(cloud, other, held, server.id)
    cloud.settle()
    then(cloud, server, request_then)
    wakes(cloud, other, held, server)


@pytest.mark.parametrize("request_then", ["nothing", "delete", "shelve"])
def test_a_late_claim_of_an_unshelve_is_undone(
    cloud: Cloud, hold: Any, other: ConductorService, request_then: str
) -> None:
    server = cloud.boot(flavor="any.small")
    then(cloud, server, "shelve")
    held = hold()
    cloud.member.compute.unshelve_server(server.id)
    take_over_at(cloud, other, held, server.id)
    cloud.wait(server, "ACTIVE")
    then(cloud, server, request_then)
    wakes(cloud, other, held, server)
