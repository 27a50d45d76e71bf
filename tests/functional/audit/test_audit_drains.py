"""Drains against what is there: conductors, hosts, servers, operations, cells."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from causeway.hosts.disabling import HostRecords, disable_for
from causeway.model.drains import (
    Drain,
    DrainRequest,
    DrainServer,
    DrainServerState,
    DrainState,
    Scope,
    Targets,
    reason_of,
)
from causeway.store.api import cells
from causeway.store.api import drains as store
from causeway.store.cell import hosts
from causeway.store.database import utcnow
from tests.functional.servers.audited_cloud import AuditedCloud

# Nobody looks at drains here.
CLOUD = {"overrides": {"drains": {"interval": 0}}}
HOST = "cell1-host1"
LONG_AGO = utcnow() - timedelta(hours=1)


@pytest.fixture(autouse=True)
def without_drains_afterwards(cloud: AuditedCloud) -> Iterator[None]:
    yield
    with cloud.parts.api_database.write() as connection:
        connection.execute(store.SERVERS.delete())
        connection.execute(store.DRAINS.delete())


def make(cloud: AuditedCloud, state: DrainState, *servers: DrainServer, **fields: Any) -> Drain:
    values: dict[str, Any] = {"started_at": LONG_AGO, "lease_until": utcnow() + timedelta(hours=1), "owner": "somebody"}
    request = DrainRequest(**{"name": "spring", "scope": Scope(cells=["cell1"])} | fields.pop("request", {}))
    drain = Drain(id=str(uuids.uuid4()), state=state, request=request, **(values | fields))
    for server in servers:
        server.drain_id = drain.id
    store.create(cloud.parts.api_database, drain, servers)
    return drain


def close(cloud: AuditedCloud, drain_id: str) -> None:
    database = cloud.cell("cell1")
    (service,) = hosts.list_services(database, host=HOST, binary="nova-compute")
    cell_uuid = cells.cell_of_host(cloud.parts.api_database, HOST)
    records = HostRecords(cloud.parts.api_database, cloud.parts.around.placement, cell_uuid, database)
    assert disable_for(records, service, reason_of(drain_id))


def is_open(cloud: AuditedCloud) -> bool:
    (service,) = hosts.list_services(cloud.cell("cell1"), host=HOST, binary="nova-compute")
    return not service.disabled


def enable(cloud: AuditedCloud) -> None:
    service = next(each for each in cloud.admin.compute.services(binary="nova-compute") if each.host == HOST)
    cloud.admin.compute.enable_service(service)


def test_a_drain_that_somebody_looks_at_is_fine(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    drain = make(cloud, DrainState.RUNNING, DrainServer(drain_id="", instance_uuid=server.id))
    close(cloud, drain.id)
    assert cloud.audit().is_clean
    enable(cloud)


@pytest.mark.parametrize(
    "state", [DrainState.RUNNING, DrainState.PAUSED, DrainState.CANCELLING, DrainState.ROLLING_BACK]
)
def test_a_drain_whose_lease_is_long_over_is_found(cloud: AuditedCloud, state: DrainState) -> None:
    make(cloud, state, lease_until=LONG_AGO)
    found = cloud.only("drain.without_owner")
    assert state.value.replace("_", " ") in found.message and "conductor" in found.left


def test_one_that_was_started_and_never_looked_at(cloud: AuditedCloud) -> None:
    make(cloud, DrainState.RUNNING, lease_until=None, owner=None)
    cloud.only_reports("drain.without_owner")


def test_one_that_was_released_just_now_is_fine(cloud: AuditedCloud) -> None:
    make(cloud, DrainState.RUNNING)
    store.release(cloud.parts.api_database, "somebody")
    assert cloud.audit().is_clean


@pytest.mark.parametrize("state", [DrainState.CANCELLED, DrainState.ROLLED_BACK])
def test_a_host_that_is_closed_by_a_drain_which_ended_is_opened(cloud: AuditedCloud, state: DrainState) -> None:
    close(cloud, make(cloud, state).id)
    found = cloud.only("host.closed_by_ended_drain")
    assert found.resource == f"host {HOST}" and "spring" in found.message
    cloud.fixes("host.closed_by_ended_drain")
    assert is_open(cloud)


def test_a_host_that_is_closed_by_a_drain_which_is_done_is_as_it_should_be(cloud: AuditedCloud) -> None:
    close(cloud, make(cloud, DrainState.DONE).id)
    assert cloud.audit().is_clean
    enable(cloud)


def test_a_host_that_an_unknown_drain_closed_is_found(cloud: AuditedCloud) -> None:
    close(cloud, str(uuids.uuid4()))
    found = cloud.only("host.closed_by_unknown_drain")
    assert "--enable" in found.left
    cloud.only_reports("host.closed_by_unknown_drain")
    enable(cloud)


def row(uuid: str, state: DrainServerState, **fields: Any) -> DrainServer:
    values: dict[str, Any] = {"request_id": "req-unknown", "began_at": LONG_AGO}
    return DrainServer(drain_id="", instance_uuid=uuid, state=state, **values | fields)


def test_a_request_that_no_operation_knows_is_found(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    make(cloud, DrainState.RUNNING, row(server.id, DrainServerState.ASKED))
    found = cloud.only("drain.request_unknown")
    assert found.server == server.id and "req-unknown" in found.message
    cloud.only_reports("drain.request_unknown")


def test_one_that_was_asked_just_now_is_fine(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    make(cloud, DrainState.RUNNING, row(server.id, DrainServerState.ASKED, began_at=utcnow()))
    assert cloud.audit().is_clean


@pytest.mark.parametrize("state", [DrainServerState.ASKED, DrainServerState.CONFIRMING, DrainServerState.REVERTING])
def test_a_server_of_a_drain_that_is_gone_is_found(cloud: AuditedCloud, state: DrainServerState) -> None:
    gone = str(uuids.uuid4())
    make(cloud, DrainState.RUNNING, row(gone, state))
    assert cloud.only("drain.server_gone").server == gone


def test_a_server_that_an_ended_drain_did_not_settle_is_found(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    make(cloud, DrainState.CANCELLED, row(server.id, DrainServerState.CONFIRMING))
    assert cloud.only("drain.server_unsettled").server == server.id


@pytest.mark.parametrize("state", [DrainState.PLANNED, DrainState.PAUSED])
@pytest.mark.parametrize("request_", [{"scope": Scope(cells=["gone"])}, {"targets": Targets(cells=["gone"])}])
def test_a_drain_of_a_cell_that_there_is_not(cloud: AuditedCloud, state: DrainState, request_: dict[str, Any]) -> None:
    drain = make(cloud, state, request=request_)
    found = cloud.only("drain.without_cell")
    assert "gone" in found.message and drain.id in found.left


def test_one_that_is_done_may_have_ended_its_cell(cloud: AuditedCloud) -> None:
    make(cloud, DrainState.DONE, request={"scope": Scope(cells=["gone"])})
    assert cloud.audit().is_clean
