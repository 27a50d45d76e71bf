"""A host of cell2 reports the node of a host of cell1, or its name, to a conductor that can't see other cells.

Such a conductor records what it gets. Nobody may then take the one host for the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openstack import exceptions

from causeway.model.host import ComputeNode
from causeway.store.api import cells
from causeway.store.cell import hosts
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.security.hosts.impostor import (
    VICTIM,
    create,
    delete_records,
    provider_stays,
    report,
    service_of,
    traits_of,
    victim_node,
    with_room,
)

KIND = AuditedCloud
CLOUD: dict[str, Any] = {
    "overrides": {"conductor": {"role": "super"}, "scheduler": {"host_state_max_age": 0}},
}
ROGUE = "rogue"


@pytest.fixture
def victim(cloud: AuditedCloud) -> Iterator[ComputeNode]:
    """The node of a host of cell1. The rogue of cell2 reports that it is its own."""
    node = victim_node(cloud)
    report(cloud, "cell2", ROGUE, uuid=node.uuid)
    yield node
    delete_records(cloud, "cell2", ROGUE)
    cells.unmap_host(cloud.parts.api_database, ROGUE)


@pytest.fixture
def namesake(cloud: AuditedCloud) -> Iterator[ComputeNode]:
    """The node of a host of cell1. A host of cell2 reports that it has the same name."""
    node = victim_node(cloud)
    other = report(cloud, "cell2", VICTIM).node
    with_room(cloud, other)
    yield node
    delete_records(cloud, "cell2", VICTIM)
    cloud.parts.around.placement.delete_provider(other.uuid, cascade=True)


def test_servers_go_to_the_host_whose_node_it_is(cloud: AuditedCloud, victim: ComputeNode) -> None:
    server = create(cloud, VICTIM)
    assert (server.status, server.compute_host) == ("ACTIVE", VICTIM), server.fault
    assert cloud.record(server, "cell1").node == victim.hypervisor_hostname


def test_the_other_host_gets_no_servers(cloud: AuditedCloud, victim: ComputeNode) -> None:  # noqa: ARG001
    with pytest.raises(exceptions.BadRequestException, match=ROGUE):
        create(cloud, ROGUE)


def test_the_provider_stays_when_the_other_hosts_service_is_deleted(cloud: AuditedCloud, victim: ComputeNode) -> None:
    cloud.admin.compute.delete_service(service_of(cloud, "cell2", ROGUE))
    assert provider_stays(cloud, victim)
    assert cells.cell_of_host(cloud.parts.api_database, VICTIM)


def test_the_victim_stays_open_when_the_other_host_is_closed(cloud: AuditedCloud, victim: ComputeNode) -> None:
    before = traits_of(cloud, victim)
    cloud.admin.compute.update_service(service_of(cloud, "cell2", ROGUE), status="disabled")
    assert traits_of(cloud, victim) == before


def test_the_victim_stays_closed_when_the_other_host_is_opened(cloud: AuditedCloud, victim: ComputeNode) -> None:
    mine = service_of(cloud, "cell1", VICTIM)
    cloud.admin.compute.update_service(mine, status="disabled")
    path = f"/os-services/{service_of(cloud, 'cell2', ROGUE).id}"
    assert cloud.admin.compute.put(path, json={"status": "enabled"}, microversion="2.53").status_code == 200
    assert "COMPUTE_STATUS_DISABLED" in traits_of(cloud, victim)
    cloud.admin.compute.update_service(mine, status="enabled")
    assert "COMPUTE_STATUS_DISABLED" not in traits_of(cloud, victim)


def test_the_hypervisor_of_the_node_is_the_victim(cloud: AuditedCloud, victim: ComputeNode) -> None:
    assert cloud.admin.compute.get_hypervisor(victim.uuid).service_details["host"] == VICTIM
    listed = [each.id for each in cloud.admin.compute.hypervisors(details=True)]
    assert listed.count(victim.uuid) == 1 and len(listed) == 4


def test_the_audit_reports_the_other_host(cloud: AuditedCloud, victim: ComputeNode) -> None:
    # It answers nobody, so the audit would wait for it.
    hosts.update_service(cloud.cell("cell2"), service_of(cloud, "cell2", ROGUE).id, forced_down=True)
    found = cloud.only("host.node_of_other")
    assert victim.uuid in found.message and VICTIM in found.message and found.left
    assert found.resource == f"host {ROGUE} of cell cell2"


def test_a_second_node_of_a_known_host_is_not_recorded(cloud: AuditedCloud) -> None:
    """So a host can't add the node of another one to its own."""
    node = victim_node(cloud)
    with pytest.raises(Exception, match="another node"):
        report(cloud, "cell2", "cell2-host1", uuid=node.uuid, hypervisor_hostname="another")
    assert len(hosts.list_nodes(cloud.cell("cell2"), host="cell2-host1")) == 1


def test_a_name_that_another_host_has_names_that_host(cloud: AuditedCloud, namesake: ComputeNode) -> None:
    server = create(cloud, VICTIM)
    assert (server.status, server.compute_host) == ("ACTIVE", VICTIM), server.fault
    assert cloud.record(server, "cell1").node == namesake.hypervisor_hostname


def test_the_end_of_a_namesake_removes_nothing_of_the_host(cloud: AuditedCloud, namesake: ComputeNode) -> None:
    aggregate = cloud.admin.compute.create_aggregate(name="of the victim")
    cloud.admin.compute.add_host_to_aggregate(aggregate, VICTIM)
    cloud.admin.compute.delete_service(service_of(cloud, "cell2", VICTIM))
    assert cloud.admin.compute.get_aggregate(aggregate.id).hosts == [VICTIM]
    assert provider_stays(cloud, namesake)
    assert cells.cell_of_host(cloud.parts.api_database, VICTIM)
    cloud.admin.compute.remove_host_from_aggregate(aggregate, VICTIM)
    cloud.admin.compute.delete_aggregate(aggregate)


def test_a_host_is_disabled_by_its_name_though_a_namesake_comes_first(cloud: AuditedCloud) -> None:
    victim = "cell2-host1"
    report(cloud, "cell1", victim)
    change = {"host": victim, "binary": "nova-compute"}
    answer = cloud.admin.compute.put("/os-services/disable", json=change, microversion="2.1")
    assert answer.status_code == 200
    assert service_of(cloud, "cell2", victim).status == "disabled"
    cloud.admin.compute.put("/os-services/enable", json=change, microversion="2.1")
    assert service_of(cloud, "cell2", victim).status == "enabled"
    delete_records(cloud, "cell1", victim)


def test_the_audit_reports_a_namesake(cloud: AuditedCloud, namesake: ComputeNode) -> None:  # noqa: ARG001
    found = cloud.only("host.name_of_other")
    assert found.resource == f"host {VICTIM} of cell cell2" and "cell1" in found.message


def test_a_node_by_a_name_that_two_report_is_that_of_the_host_that_was_asked_for(cloud: AuditedCloud) -> None:
    """``hypervisor_hostname`` is not unique: a host may report any."""
    report(cloud, "cell2", ROGUE, hypervisor_hostname=VICTIM)
    server = cloud.wait(
        cloud.admin.compute.create_server(
            name="wanted",
            flavor_id="gen1.small",
            image_id=cloud.image_id,
            networks=[{"uuid": cloud.network_id}],
            hypervisor_hostname=VICTIM,
        ),
        "ACTIVE",
    )
    assert server.compute_host == VICTIM
    delete_records(cloud, "cell2", ROGUE)
    cells.unmap_host(cloud.parts.api_database, ROGUE)
