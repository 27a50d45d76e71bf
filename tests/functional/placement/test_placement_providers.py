"""What compute hosts and host aggregates keep in the real Placement."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from oslo_config import cfg

from causeway import errors
from causeway.clients.placement import CandidatesRequest, Inventory, PlacementClient, RequestGroup, remote_placement
from causeway.conf import placement as options
from causeway.embedded.placement.local import LocalPlacement, local_placement
from causeway.http.direct import DirectTransport

MakeHost = Callable[..., str]


def new_uuid() -> str:
    return str(uuid.uuid4())


def candidates(client: PlacementClient, **group: Any) -> set[str]:
    asked = CandidatesRequest(
        [RequestGroup(resources={"VCPU": 1}, **group)], root_forbidden={"COMPUTE_STATUS_DISABLED"}
    )
    found = client.allocation_candidates(asked)
    return {found.root_of(request) for request in found.requests}


def test_a_provider_is_made_once(client: PlacementClient, make_host: MakeHost) -> None:
    host = make_host()
    found = client.get_provider(host)
    assert found is not None
    assert client.ensure_provider(host, found.name).uuid == host
    assert [provider.uuid for provider in client.list_providers(name=found.name)] == [host]
    with pytest.raises(errors.ServiceRefused):
        client.ensure_provider(new_uuid(), found.name)


def test_inventory_is_written_only_if_it_differs(client: PlacementClient, make_host: MakeHost) -> None:
    host = make_host()
    inventory = {
        "VCPU": Inventory(4, allocation_ratio=4.0),
        "MEMORY_MB": Inventory(1024, reserved=512),
        "PCPU": Inventory(0),
    }
    assert client.set_inventory(host, inventory)
    client.reset_calls()
    assert not client.set_inventory(host, inventory)
    assert client.calls == {"GET /resource_providers/{uuid}/inventories": 1}
    assert client.get_inventories(host) == {
        "VCPU": Inventory(4, allocation_ratio=4.0, max_unit=4),
        "MEMORY_MB": Inventory(1024, reserved=512, max_unit=1024),
    }


def test_inventory_in_use_can_not_go(client: PlacementClient, make_host: MakeHost) -> None:
    host = make_host()
    client.claim(new_uuid(), {host: {"VCPU": 1}}, "project", "user")
    with pytest.raises(errors.ServiceRefused):
        client.set_inventory(host, {"MEMORY_MB": Inventory(1024)})


def test_a_custom_resource_class_comes_to_be_by_its_name(client: PlacementClient, make_host: MakeHost) -> None:
    host = make_host()
    client.set_inventory(host, {"CUSTOM_GPU": Inventory(2)})
    assert client.get_inventories(host)["CUSTOM_GPU"].total == 2


def test_the_operators_traits_stay(client: PlacementClient, make_host: MakeHost) -> None:
    host = make_host()
    client.change_traits(host, add={"CUSTOM_FAST", "COMPUTE_TRUSTED_CERTS"})
    client.set_traits(host, {"COMPUTE_NODE"}, owned={"COMPUTE_NODE", "COMPUTE_TRUSTED_CERTS"})
    assert client.get_traits(host) == {"CUSTOM_FAST", "COMPUTE_NODE"}
    assert not client.change_traits(host, add={"CUSTOM_FAST"})


def test_a_disabled_host_is_no_candidate(client: PlacementClient, make_host: MakeHost) -> None:
    host = make_host()
    assert host in candidates(client)
    client.change_traits(host, add={"COMPUTE_STATUS_DISABLED"})
    assert host not in candidates(client)
    client.change_traits(host, remove={"COMPUTE_STATUS_DISABLED"})
    assert host in candidates(client)


def test_aggregates_decide_who_is_a_candidate(client: PlacementClient, make_host: MakeHost) -> None:
    inside, outside, aggregate = make_host(), make_host(), new_uuid()
    assert client.add_aggregate(inside, aggregate)
    assert not client.add_aggregate(inside, aggregate)
    assert candidates(client, member_of=[{aggregate}]) == {inside}
    found = candidates(client, forbidden_aggregates={aggregate})
    assert outside in found
    assert inside not in found
    client.remove_aggregate(inside, aggregate)
    assert candidates(client, member_of=[{aggregate}]) == set()


def test_one_host_can_be_asked_for(client: PlacementClient, make_host: MakeHost) -> None:
    host, _other = make_host(), make_host()
    assert candidates(client, in_tree=host) == {host}


def test_those_who_write_to_one_provider_at_once_all_succeed(placement: LocalPlacement, make_host: MakeHost) -> None:
    host = make_host()
    aggregates = {new_uuid() for _ in range(3)}
    start = threading.Barrier(3)

    def add(aggregate: str) -> bool:
        client = placement.client()
        start.wait()
        return client.add_aggregate(host, aggregate)

    with ThreadPoolExecutor(3, thread_name_prefix="aggregate") as pool:
        assert all(pool.map(add, aggregates))
    assert placement.client().get_aggregates(host) == aggregates


def test_a_provider_is_deleted_with_its_allocations_only_if_asked(client: PlacementClient, make_host: MakeHost) -> None:
    host, server = make_host(), new_uuid()
    client.claim(server, {host: {"VCPU": 1}}, "project", "user")
    with pytest.raises(errors.ServiceRefused):
        client.delete_provider(host)
    assert client.get_provider_allocations(host) == {server: {"VCPU": 1}}
    client.delete_provider(host, cascade=True)
    client.delete_provider(host)
    assert client.get_provider(host) is None
    assert client.get_provider_allocations(host) == {}


def test_the_public_application_wants_a_token(placement: LocalPlacement) -> None:
    """And the administrator of the internal one is nobody there."""
    application = placement.public_app(
        {"auth_type": "password", "auth_url": "http://127.0.0.1:9/v3", "username": "placement", "password": "secret"}
    )
    session = requests.Session()
    session.mount("http://public", DirectTransport(application))
    versions = session.get("http://public/")
    assert versions.status_code == 200
    assert versions.json()["versions"][0]["id"] == "v1.0"
    assert session.get("http://public/resource_providers").status_code == 401


def test_a_process_runs_one_placement_at_a_time(placement: LocalPlacement, tmp_path: Path) -> None:
    assert placement is not None
    with pytest.raises(RuntimeError, match="runs in this process already"):
        local_placement(tmp_path / "other.sqlite")


def test_a_service_that_does_not_answer() -> None:
    conf = cfg.ConfigOpts()
    for group, group_options in options.OPTS.items():
        conf.register_opts(group_options, group=group)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("auth_type", "none", group="placement")
    # Nobody listens on port 9 of this host.
    conf.set_override("endpoint_override", "http://127.0.0.1:9/placement", group="placement")
    client = remote_placement(conf)
    with pytest.raises(errors.ServiceFailed, match="did not answer") as failed:
        client.get_allocations(new_uuid())
    assert "GET /allocations/{consumer}" in failed.value.details
    assert client.calls == {"GET /allocations/{consumer}": 1}
