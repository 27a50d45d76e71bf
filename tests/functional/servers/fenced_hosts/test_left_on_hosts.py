"""What is left on a host that was dead is done when it comes back, or later; other hosts and cells are not held up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from causeway.compute.upkeep.missed_orders import MissedOrdersEndpoint
from causeway.conductor.upkeep import cleaning
from causeway.hosts.cleanups import note
from causeway.model.missed import Missed
from causeway.model.states import PowerState
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import mappings
from tests.functional.servers.broken_hosts import force_down, start
from tests.functional.servers.dead_hosts import (
    CLOUD,
    HAND_OVER,
    START,
    away,
    cleaned,
    come_back,
    comes_back,
    dies_when,
    left_on,
    moved,
    runs_on,
)
from tests.functional.servers.moves_cloud import PATIENCE, Cloud, until

__all__ = ["CLOUD"]

pytestmark = [pytest.mark.embedded("stops compute services and starts them again"), pytest.mark.usefixtures("dead")]


def test_a_server_whose_mapping_was_lost_is_not_taken_for_deleted(cloud: Cloud, dead: Callable[..., None]) -> None:
    """What a host has of it stays, until somebody has found out where the server lives."""
    server, _source, target = moved(cloud, "cross")
    dead(target)
    cloud.reverted(server)
    database = cloud.parts.api_database
    lost = mappings.get(database, server.id)
    with database.write() as connection:
        connection.execute(mappings.TABLE.delete().where(mappings.TABLE.c.instance_uuid == server.id))
    try:
        come_back(cloud, target)
        assert left_on(cloud, target) and cloud.driver(target).inspect(server.id).has_disks
    finally:
        with database.write() as connection:
            mappings.insert_in(connection, lost)
    cleaned(cloud, target)
    assert not cloud.driver(target).inspect(server.id).has_disks


def test_a_dead_cell_keeps_no_host_of_another_cell_from_starting(cloud: Cloud, dead: Callable[..., None]) -> None:
    """Of a server that may live in the dead cell nothing is destroyed, and nothing of it runs."""
    lost, source, target = moved(cloud, "cross")
    other = cloud.boot(flavor="gen2.small")
    while cloud.show(other).compute_host != target:
        other = cloud.boot(flavor="gen2.small")
    dead(target)
    cloud.reverted(lost)
    cloud.driver(source).guest_write(lost.id, "more")
    runs_on(cloud, target, lost)
    with away("cell1"):
        comes_back(cloud, target)
        facts = cloud.driver(target).inspect(lost.id)
        assert (facts.power_state, facts.has_disks) == (PowerState.SHUTDOWN, True)
        cloud.parts.computes[target].host.driver.power_off(other.id, 0)
        assert left_on(cloud, target) == ["drop_move_at_dest"]
    cloud.member.compute.reboot_server(other.id, "HARD")
    cloud.wait(other, "ACTIVE")
    assert cloud.driver(source).running_anywhere(lost.id) == [source]


def test_a_host_that_was_unavailable_for_a_moment_starts_without_the_api_database(cloud: Cloud) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    cloud.embedded.computes[host].stop()
    with away(cloud.parts.api_database.name):
        comes_back(cloud, host)
    assert cloud.show(server).status == "ACTIVE"


def test_a_host_that_was_dead_waits_for_the_api_database(
    cloud: Cloud, dead: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causeway.compute.upkeep.missed_orders.PAUSE", 0.2)
    server, source, target = moved(cloud, "cross")
    dead(target)
    cloud.reverted(server)
    runs_on(cloud, target, server)
    force_down(cloud.embedded, target, False)
    waiting = threading.Thread(target=start, args=(cloud.embedded, target))
    with away(cloud.parts.api_database.name):
        waiting.start()
        waiting.join(1)
        assert waiting.is_alive()
    waiting.join(START)
    assert cloud.hosts_of(server) == {source: "guest"}


def test_what_could_not_be_done_when_the_host_came_back_is_done_later(cloud: Cloud, dead: Callable[..., None]) -> None:
    server, source, target = moved(cloud, "cross")
    dead(target)
    cloud.reverted(server)
    with away("cell1"):
        comes_back(cloud, target)
    assert cloud.hosts_of(server) == {source: "guest", target: "guest"}
    cleaned(cloud, target)
    assert cloud.hosts_of(server) == {source: "guest"}


@pytest.mark.expects_errors("What is left of server .* stays")
def test_disks_that_could_not_be_put_back_are_put_back_later(
    cloud: Cloud, dead: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = cloud.boot()
    source = cloud.show(server).compute_host
    cloud.driver(source).guest_write(server.id, "precious")
    dies_when(cloud, dead, HAND_OVER, Verdict.LOSE_REQUEST, fenced=True)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    until(lambda: cloud.show(server).status, lambda status: status == "ERROR", "the server to be in ERROR")
    cloud.settle()

    def fails(*_: object) -> None:
        raise OSError("The disk is full.")

    with monkeypatch.context() as broken:
        broken.setattr(MissedOrdersEndpoint, "_restore_disks", fails)
        comes_back(cloud, source)
        assert left_on(cloud, source) == ["restore_disks"]
    cleaned(cloud, source)
    cloud.member.compute.reboot_server(server.id, "HARD")
    until(lambda: cloud.show(server).status, lambda status: status == "ACTIVE", "the server to run again")
    assert "precious" in cloud.driver(source).guest_read(server.id)


def left_of_deleted(cloud: Cloud, hosts: list[str]) -> None:
    """Something of a server that is deleted is left on hosts."""
    services = cloud.embedded.conductor._services
    cells = {cell.name: cell.uuid for cell in services.cells.mappings()}
    deleted = cloud.record(cloud.boot(), "cell1")
    cloud.member.compute.delete_server(deleted.uuid)
    until(lambda: cloud.member.compute.find_server(deleted.uuid), lambda found: found is None, "the server to go")
    for host in hosts:
        note(services, host, cells[host[:5]], Missed.DESTROY, deleted, [])


def test_no_host_and_no_cell_holds_up_the_cleaning_of_another_host(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, opened = cloud.embedded.conductor._services, threading.Event()
    left_of_deleted(cloud, list(cloud.parts.computes))
    monkeypatch.setattr(services.cells, "timeout", 0.5)

    def on_send(message: Outgoing) -> Verdict:
        if (message.method, message.server) == ("carry_out_missed", "cell1-host1"):
            opened.wait(PATIENCE)
        return Verdict.DELIVER

    cloud.embedded.around.transports.on_send = on_send
    with away("cell2"):
        cleaned(cloud, "cell1-host2")
        assert left_on(cloud, "cell1-host1") == left_on(cloud, "cell2-host1") == ["destroy_instance"]
    opened.set()
    for host in cloud.parts.computes:
        cleaned(cloud, host)


@pytest.mark.parametrize("fenced", [True, False])
def test_a_look_sends_nothing_to_a_host_that_is_not_there(
    cloud: Cloud, dead: Callable[..., None], fenced: bool
) -> None:
    left_of_deleted(cloud, ["cell1-host1", "cell1-host2"])
    dead("cell1-host1", fenced=fenced)
    asked: list[str | None] = []

    def on_send(message: Outgoing) -> Verdict:
        asked.extend([message.server] if message.method == "carry_out_missed" else [])
        return Verdict.DELIVER

    cloud.embedded.around.transports.on_send = on_send
    cleaned(cloud, "cell1-host2")
    assert set(asked) == {"cell1-host2"}
    come_back(cloud, "cell1-host1")
    assert left_on(cloud, "cell1-host1") == []


def test_a_look_costs_one_statement_while_nothing_is_left(cloud: Cloud) -> None:
    services = cloud.embedded.conductor._services
    asked: list[threading.Thread] = []

    def count(*_: Any) -> None:
        asked.append(threading.current_thread())

    sa.event.listen(services.api.engine, "before_cursor_execute", count)
    try:
        cleaning.look(services)
    finally:
        sa.event.remove(services.api.engine, "before_cursor_execute", count)
    assert asked.count(threading.current_thread()) == 1


def test_what_a_host_received_of_a_disk_goes_with_the_guest(cloud: Cloud) -> None:
    server = cloud.boot()
    cache = cloud.parts.computes[cloud.show(server).compute_host].host.image_cache
    part = cache.received(cloud.image_id, server.id)
    part.write_bytes(b"the beginning")
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.member.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert not part.exists()
