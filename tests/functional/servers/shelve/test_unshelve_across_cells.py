"""A shelved server comes back in another cell: on a host there that was named, or because its own cell has none."""

from __future__ import annotations

import dataclasses
import threading
import uuid as uuids
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.model.sagas import SagaState
from causeway.moves.without_guest import unshelve_across_cells
from causeway.moves.without_guest.unshelve_across_cells import UnshelveThere
from causeway.moves.without_guest.unshelve_memory import UNSHELVE_VERSION
from causeway.running.followers import follower_of
from causeway.store.api import journal
from causeway.store.cell import copies
from tests.functional.servers.moves_cloud import Cloud, until

CELLS = ("cell1", "cell2")


def unshelve(cloud: Cloud, server: Any, **where: Any) -> Any:
    by = cloud.admin if "host" in where else cloud.member
    body = {"unshelve": where or None}
    return by.compute.post(f"/servers/{server.id}/action", json=body, microversion="2.91")


def accepted(cloud: Cloud, server: Any, **where: Any) -> None:
    answer = unshelve(cloud, server, **where)
    assert answer.status_code == 202, answer.text


def cell_of(host: str) -> str:
    return host.partition("-")[0]


def other(cell: str) -> str:
    return CELLS[1 - CELLS.index(cell)]


def cells_with(cloud: Cloud, server: Any) -> list[str]:
    return [name for name in CELLS if copies.exists(cloud.cell(name), server.id)]


@contextmanager
def closed(cloud: Cloud, *cells: str) -> Iterator[None]:
    """No host of these cells takes a server."""
    services = [one for one in cloud.admin.compute.services(binary="nova-compute") if cell_of(one.host) in cells]
    for service in services:
        cloud.admin.compute.disable_service(service)
    try:
        yield
    finally:
        for service in services:
            cloud.admin.compute.enable_service(service)


@pytest.fixture
def server(cloud: Cloud) -> Any:
    """A server with a volume, that any host could take."""
    made = cloud.boot(flavor="any.small")
    cloud.attach(made, cloud.volume())
    cloud.driver(cloud.show(made).compute_host).guest_write(made.id, "on its disk")
    cloud.driver(cloud.show(made).compute_host).guest_write(made.id, "on its volume", "vdb")
    return made


@pytest.fixture
def home(cloud: Cloud, server: Any) -> str:
    """Its cell. The server is shelved and offloaded."""
    found = cell_of(cloud.show(server).compute_host)
    cloud.member.compute.shelve_server(server.id)
    cloud.wait(server, "SHELVED_OFFLOADED")
    return found


def check_there(cloud: Cloud, server: Any, home: str) -> str:
    """The server runs in the other cell with all that it had, and its former cell has nothing of it."""
    shown = cloud.wait(server, "ACTIVE")
    cloud.settle()
    host = str(shown.compute_host)
    assert (cell_of(host), cells_with(cloud, server)) == (other(home), [other(home)])
    assert cloud.hosts_of(server) == {host: "guest"}
    assert list(cloud.allocations(server.id)) == [host]
    assert cloud.cleanups(server, home) == []
    assert [port.binding_host_id for port in cloud.admin.network.ports(device_id=server.id)] == [host]
    assert [each["status"] for each in cloud.attachments(server)] == ["attached"]
    assert "on its disk" in cloud.driver(host).guest_read(server.id)
    assert "on its volume" in cloud.driver(host).guest_read(server.id, "vdb")
    assert [image.name for image in cloud.member.image.images() if image.name.endswith("-shelved")] == []
    if not cloud.by_url:
        assert audit_embedded(cloud.parts, pause=0.01).is_clean
    return host


def test_an_unshelved_server_comes_up_on_the_host_that_is_named(cloud: Cloud, server: Any, home: str) -> None:
    wanted = f"{other(home)}-host2"
    accepted(cloud, server, host=wanted)
    assert check_there(cloud, server, home) == wanted
    assert cloud.actions(server)[-1] == "unshelve"
    assert [event for event, _result in cloud.events(server, "unshelve")] == [
        "conductor_unshelve_instance",
        "conductor_migrate_server",
        "compute_unshelve_instance",
    ]
    recipes = [one.recipe for one in journal.of_server(cloud.parts.api_database, server.id)]
    assert recipes[-2:] == ["unshelve_across_cells", "unshelve"]


def test_an_unshelved_server_comes_up_in_the_other_cell_if_its_own_has_no_host(
    cloud: Cloud, server: Any, home: str
) -> None:
    with closed(cloud, home):
        accepted(cloud, server)
        check_there(cloud, server, home)


def test_an_unshelved_server_stays_in_its_own_cell_if_there_is_a_host(cloud: Cloud, server: Any, home: str) -> None:
    accepted(cloud, server)
    assert cell_of(cloud.wait(server, "ACTIVE").compute_host) == home
    assert cells_with(cloud, server) == [home]


def test_an_unshelved_server_comes_up_in_a_zone_that_only_the_other_cell_has(
    cloud: Cloud, server: Any, home: str
) -> None:
    zone = cloud.admin.compute.create_aggregate(name="far", availability_zone="far")
    host = f"{other(home)}-host1"
    cloud.admin.compute.add_host_to_aggregate(zone, host)
    try:
        accepted(cloud, server, availability_zone="far")
        assert check_there(cloud, server, home) == host
        cloud.clean()
    finally:
        cloud.admin.compute.remove_host_from_aggregate(zone, host)
        cloud.admin.compute.delete_aggregate(zone)


def test_a_server_stays_shelved_if_no_cell_has_a_host(cloud: Cloud, server: Any, home: str) -> None:
    with closed(cloud, *CELLS):
        accepted(cloud, server)
        cloud.wait(server, "SHELVED_OFFLOADED")
        cloud.settle()
        assert cells_with(cloud, server) == [home] and cloud.allocations(server.id) == {}
        assert cloud.faults(server, home)[-1].message.startswith("No valid host was found.")
        assert cloud.action(server, "unshelve").message.startswith("No valid host was found.")
    accepted(cloud, server)
    cloud.wait(server, "ACTIVE")


def test_a_guest_that_can_not_be_made_there_leaves_it_shelved_there(cloud: Cloud, server: Any, home: str) -> None:
    wanted = f"{other(home)}-host1"
    cloud.option("patience", 0, "moves")
    cloud.break_driver([wanted], "spawn")
    accepted(cloud, server, host=wanted)
    cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()
    cloud.heal()
    assert cells_with(cloud, server) == [other(home)] and cloud.hosts_of(server) == {}
    assert cloud.allocations(server.id) == {}
    assert [each["status"] for each in cloud.attachments(server)] == ["reserved"]
    assert cloud.action(server, "unshelve").message
    accepted(cloud, server)
    check_there(cloud, server, home)


@pytest.mark.embedded("replaces code")
@pytest.mark.expects_errors("failed with an unexpected error")
def test_records_that_can_not_be_copied_leave_it_where_it_was(cloud: Cloud, server: Any, home: str) -> None:
    def broken(*_given: Any, **_more: Any) -> None:
        raise RuntimeError("broken")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(copies, "write", broken)
        accepted(cloud, server, host=f"{other(home)}-host1")
        cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()
    assert cells_with(cloud, server) == [home] and cloud.allocations(server.id) == {}
    accepted(cloud, server, host=f"{other(home)}-host1")
    check_there(cloud, server, home)


@pytest.mark.embedded("replaces code")
def test_a_server_that_is_deleted_between_the_two_operations_is_gone(cloud: Cloud, server: Any, home: str) -> None:
    reached, proceed = threading.Event(), threading.Event()
    original = UnshelveThere.do

    def late(step: UnshelveThere, run: Any) -> None:
        reached.set()
        assert proceed.wait(30)
        original(step, run)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(UnshelveThere, "do", late)
        accepted(cloud, server, host=f"{other(home)}-host1")
        assert reached.wait(30)
        cloud.member.compute.delete_server(server.id)
        proceed.set()
        until(lambda: cloud.member.compute.find_server(server.id), lambda found: found is None, "the server to go")
    cloud.settle()
    assert cells_with(cloud, server) in ([], [other(home)]) and cloud.hosts_of(server) == {}
    assert cloud.allocations(server.id) == {} and cloud.attachments(server) == []
    assert [image.name for image in cloud.member.image.images() if image.name.endswith("-shelved")] == []
    assert audit_embedded(cloud.parts, pause=0.01).is_clean


@pytest.mark.embedded("replaces code")
def test_what_is_cancelled_between_the_two_operations_holds_no_host(cloud: Cloud, server: Any, home: str) -> None:
    def cancelled(*given: Any, **more: Any) -> Any:
        follower = follower_of(*given, **more)
        follower.cancel_requested = True
        return follower

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(unshelve_across_cells, "follower_of", cancelled)
        accepted(cloud, server, host=f"{other(home)}-host1")
        cloud.wait(server, "SHELVED_OFFLOADED")
    cloud.settle()
    assert cells_with(cloud, server) == [other(home)] and cloud.allocations(server.id) == {}
    assert cloud.action(server, "unshelve").message == "It was cancelled on request."
    accepted(cloud, server)
    check_there(cloud, server, home)


@pytest.mark.embedded("writes to the journal")
@pytest.mark.parametrize("across_cells", [False, True])
def test_a_second_unshelve_leaves_the_guest_of_the_first_alone(
    cloud: Cloud, server: Any, home: str, across_cells: bool
) -> None:
    accepted(cloud, server, **({"host": f"{other(home)}-host1"} if across_cells else {}))
    host = str(cloud.wait(server, "ACTIVE").compute_host)
    cloud.settle()
    api = cloud.parts.api_database
    former = journal.of_server(api, server.id)[-1]
    memory = former.data if across_cells else former.data | {"place": None}
    follower = follower_of(former, "unshelve", UNSHELVE_VERSION, memory, 1)
    second = dataclasses.replace(follower, id=str(uuids.uuid4()))
    with api.write() as connection:
        journal.insert_in(connection, second)
    until(lambda: journal.get(api, second.id).state, lambda state: state is SagaState.FAILED, "the second to end")
    assert cloud.show(server).status == "ACTIVE"
    assert cloud.hosts_of(server) == {host: "guest"} and list(cloud.allocations(server.id)) == [host]
    assert "on its disk" in cloud.driver(host).guest_read(server.id)
    assert "another operation has unshelved it" in (journal.get(api, second.id).error or {})["message"]
    assert audit_embedded(cloud.parts, pause=0.01).is_clean
