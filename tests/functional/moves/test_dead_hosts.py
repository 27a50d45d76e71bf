"""A host is dead for good: an operator says so, moves and deletes go on without it, and it is cleaned when it comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from broken_hosts import force_down, start, stop
from moves_cloud import PATIENCE, Cloud, until
from openstack.exceptions import ConflictException

from causeway import errors
from causeway.compute.missed_orders import MissedOrdersEndpoint
from causeway.conductor import cleaning
from causeway.conductor.auto_confirm import AutoConfirm
from causeway.conductor.leftovers import note
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.missed import Missed
from causeway.model.moves import MoveState
from causeway.model.states import PowerState
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import journal, leftovers, mappings
from causeway.store.database import Database

pytestmark = pytest.mark.embedded("stops compute services and starts them again")

# Seconds in which a host starts, if nothing holds it up.
START = 20.0
REACHES = pytest.mark.parametrize("reach", ["cross", "same"])
FLAVORS = {"cross": ("gen1.small", "gen2.small"), "same": ("any.small", "any.medium")}
FINISH = ("finish_snapshot_based_resize_at_dest", "finish_resize")
PREPARE = ("prep_snapshot_based_resize_at_dest", "prep_resize")
HAND_OVER = ("prep_snapshot_based_resize_at_source", "resize_instance")


@pytest.fixture(scope="module")
def module_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    # Moves that were let go are looked for every third of a lease.
    overrides = {"moves": {"lease": 6.0}}
    path = Path(tmp_path_factory.mktemp("cloud"))
    embedded = EmbeddedCloud(path, port=0, cells=2, hosts_per_cell=2, overrides=overrides)
    embedded.start()
    yield Cloud(embedded)
    # Those that were started again are not known to it.
    for service in embedded.computes.values():
        service.stop()
    embedded.stop()


@pytest.fixture
def dead(module_cloud: Cloud) -> Iterator[Callable[..., None]]:
    """Switches a host off, and says so if it is fenced; afterwards all are back."""
    embedded, stopped = module_cloud.embedded, set()

    def die(host: str, *, fenced: bool = True) -> None:
        if host not in stopped:
            stop(embedded, host)
        stopped.add(host)
        force_down(embedded, host, fenced)

    yield die
    for host in stopped:
        if embedded.computes[host].host.stopping.is_set():
            come_back(module_cloud, host)


@pytest.fixture
def cloud(module_cloud: Cloud, dead: Callable[..., None]) -> Iterator[Cloud]:  # noqa: ARG001 - hosts come back before the end
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    module_cloud.clean()


@pytest.fixture(autouse=True)
def back_before_clean(cloud: Cloud, dead: Callable[..., None]) -> Iterator[None]:  # noqa: ARG001
    yield
    for host in list(cloud.parts.computes):
        if cloud.embedded.computes[host].host.stopping.is_set():
            come_back(cloud, host)


def come_back(cloud: Cloud, host: str) -> None:
    force_down(cloud.embedded, host, False)
    start(cloud.embedded, host)


def comes_back(cloud: Cloud, host: str) -> None:
    """`come_back`, which must not take long."""
    force_down(cloud.embedded, host, False)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(start, cloud.embedded, host)
        try:
            starting.result(START)
        except TimeoutError:
            cloud.embedded.computes[host].host.stopping.set()
            pytest.fail(f"{host} did not start")


@contextmanager
def away(name: str) -> Iterator[None]:
    """A database refuses all connections."""

    def refuse(work: Any) -> Any:
        def ask(database: Database) -> Any:
            if database.name == name:
                raise errors.DatabaseFailed(f"The database of {name} is away.")
            return work(database)

        return ask

    with pytest.MonkeyPatch.context() as patched:
        for each in ("read", "write"):
            patched.setattr(Database, each, refuse(getattr(Database, each)))
        yield


def runs_on(cloud: Cloud, host: str, server: Any) -> None:
    """The guest runs on, whatever was said of its host."""
    guest = cloud.driver(host)._guests[server.id]
    guest.power_state = PowerState.RUNNING
    cloud.driver(host)._save(guest)


def moved(cloud: Cloud, reach: str, **fields: Any) -> tuple[Any, str, str]:
    server = cloud.boot(flavor=FLAVORS[reach][0], **fields)
    source = cloud.show(server).compute_host
    cloud.driver(source).guest_write(server.id, "precious")
    return server, source, cloud.resized(server, FLAVORS[reach][1]).compute_host


def left_on(cloud: Cloud, host: str) -> list[str]:
    return [found.what for found in leftovers.listed(cloud.parts.api_database, host)]


def fault_of(cloud: Cloud, server: Any, ask: Callable[[str], None]) -> Any:
    """Asks for something that ends with the server in VERIFY_RESIZE as before; the fault that tells why."""
    cell = cloud.show(server).compute_host[:5]
    known = len(cloud.faults(server, cell))
    ask(server.id)
    until(lambda: cloud.faults(server, cell), lambda found: len(found) > known, "a fault")
    cloud.settle()
    found = cloud.show(server)
    assert (found.status, found.task_state) == ("VERIFY_RESIZE", None)
    assert cloud.migration(server).status == "finished"
    fault = cloud.faults(server, cell)[-1]
    assert not any(host in fault.message for host in cloud.parts.computes)
    return fault


@REACHES
def test_a_revert_goes_on_without_a_target_that_is_dead(cloud: Cloud, dead: Callable[..., None], reach: str) -> None:
    server, source, target = moved(cloud, reach)
    dead(target, fenced=False)
    fault = fault_of(cloud, server, cloud.member.compute.revert_server_resize)
    assert f"openstack compute service set --down {target}" in fault.details
    dead(target)
    found = cloud.reverted(server)
    assert (found.status, found.compute_host) == ("ACTIVE", source)
    assert "precious" in cloud.driver(source).guest_read(server.id)
    assert left_on(cloud, target) == ["drop_move_at_dest" if reach == "cross" else "revert_resize"]
    come_back(cloud, target)
    # Before it takes any order.
    assert cloud.hosts_of(server) == {source: "guest"}
    assert left_on(cloud, target) == []


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


@REACHES
def test_a_guest_that_still_runs_on_a_host_that_was_called_dead_is_destroyed(
    cloud: Cloud, dead: Callable[..., None], reach: str
) -> None:
    server, source, target = moved(cloud, reach)
    dead(target)
    found = cloud.reverted(server)
    runs_on(cloud, target, server)
    come_back(cloud, target)
    assert cloud.driver(source).running_anywhere(server.id) == [source] == [found.compute_host]
    assert cloud.hosts_of(server) == {source: "guest"}


@REACHES
def test_a_confirm_goes_on_without_a_source_that_is_dead(cloud: Cloud, dead: Callable[..., None], reach: str) -> None:
    server, source, target = moved(cloud, reach)
    dead(source, fenced=False)
    with pytest.raises(ConflictException, match="down"):
        cloud.member.compute.confirm_server_resize(server.id)
    dead(source)
    found = cloud.confirmed(server)
    assert (found.status, found.compute_host) == ("ACTIVE", target)
    assert cloud.migration(server).status == "confirmed"
    assert len(left_on(cloud, source)) == 1
    come_back(cloud, source)
    assert cloud.hosts_of(server) == {target: "guest"}
    assert left_on(cloud, source) == []


@REACHES
@pytest.mark.parametrize("fenced", [True, False])
def test_nothing_is_confirmed_while_the_host_that_keeps_the_server_is_down(
    cloud: Cloud, dead: Callable[..., None], reach: str, fenced: bool
) -> None:
    server, source, target = moved(cloud, reach)
    dead(target, fenced=fenced)
    fault_of(cloud, server, cloud.member.compute.confirm_server_resize)
    assert "stashed" in cloud.hosts_of(server)[source]


@REACHES
@pytest.mark.parametrize("which", ["source", "target"])
def test_a_server_in_verify_resize_is_deleted_without_a_dead_host(
    cloud: Cloud, dead: Callable[..., None], reach: str, which: str
) -> None:
    server, source, target = moved(cloud, reach)
    host = source if which == "source" else target
    dead(host)
    cloud.member.compute.delete_server(server.id)
    until(lambda: cloud.member.compute.find_server(server.id), lambda found: found is None, "the server to go")
    cloud.settle()
    assert set(cloud.hosts_of(server)) == {host}
    come_back(cloud, host)
    assert cloud.hosts_of(server) == {}
    assert left_on(cloud, host) == []


def dies_when(
    cloud: Cloud, dead: Callable[..., None], methods: tuple[str, ...], verdict: Verdict, *, fenced: bool
) -> None:
    """The host of an order is dead from the moment it is sent, or from the moment it was carried out."""
    done: list[str] = []

    def on_send(message: Outgoing) -> Verdict:
        if message.method not in methods or done or message.server is None:
            return Verdict.DELIVER
        done.append(message.server)
        if verdict is Verdict.LOSE_REQUEST:
            dead(message.server, fenced=fenced)
        return verdict

    cloud.embedded.around.transports.on_send = on_send


@REACHES
def test_a_target_that_dies_before_it_is_prepared_is_left_for_the_next(
    cloud: Cloud, dead: Callable[..., None], reach: str
) -> None:
    """Nobody waits for it until patience is over, nor asks it again."""
    server = cloud.boot(flavor=FLAVORS[reach][0])
    asked: list[str] = []

    def look(message: Outgoing) -> Verdict:
        if message.method not in PREPARE:
            return Verdict.DELIVER
        asked.append(message.server or "")
        if len(asked) > 1:
            return Verdict.DELIVER
        dead(message.server)
        return Verdict.LOSE_REQUEST

    cloud.parts.around.transports.on_send = look
    if reach == "cross":
        moved = cloud.resized(server, FLAVORS[reach][1])
        assert [moved.compute_host] == asked[1:] != asked[:1]
        return
    cloud.member.compute.resize_server(server.id, FLAVORS[reach][1])
    # There is no other host than the one where the server is.
    home = cloud.failed(server).compute_host.partition("-")[0]
    assert len(asked) == 1
    assert "is dead" in cloud.faults(server, home)[-1].message


@REACHES
def test_a_move_whose_target_dies_is_undone_without_it(cloud: Cloud, dead: Callable[..., None], reach: str) -> None:
    server = cloud.boot(flavor=FLAVORS[reach][0])
    source = cloud.show(server).compute_host
    cloud.driver(source).guest_write(server.id, "precious")
    dies_when(cloud, dead, FINISH, Verdict.LOSE_REQUEST, fenced=True)
    cloud.member.compute.resize_server(server.id, FLAVORS[reach][1])
    cloud.failed(server)
    cloud.settle()
    found = cloud.show(server)
    assert (found.status, found.compute_host) == ("ACTIVE", source)
    assert "precious" in cloud.driver(source).guest_read(server.id)
    target = cloud.migration(server).dest_compute
    assert left_on(cloud, target) == ["drop_move_at_dest" if reach == "cross" else "revert_resize"]
    come_back(cloud, target)
    assert left_on(cloud, target) == []


@REACHES
@pytest.mark.parametrize("then", ["comes back", "is deleted"])
def test_a_move_whose_source_dies_before_the_target_has_anything_destroys_nothing(
    cloud: Cloud, dead: Callable[..., None], reach: str, then: str
) -> None:
    server = cloud.boot(flavor=FLAVORS[reach][0])
    source = cloud.show(server).compute_host
    cloud.driver(source).guest_write(server.id, "precious")
    dies_when(cloud, dead, HAND_OVER, Verdict.LOSE_REQUEST, fenced=True)
    cloud.member.compute.resize_server(server.id, FLAVORS[reach][1])
    until(lambda: cloud.show(server).status, lambda status: status == "ERROR", "the server to be in ERROR")
    cloud.settle()
    assert cloud.migration(server).status == "error"
    assert cloud.show(server).compute_host == source
    assert left_on(cloud, source) == ["restore_disks"]
    if then == "is deleted":
        cloud.member.compute.delete_server(server.id)
        until(lambda: cloud.member.compute.find_server(server.id), lambda found: found is None, "the server to go")
        come_back(cloud, source)
        assert cloud.hosts_of(server) == {}
        return
    come_back(cloud, source)
    assert left_on(cloud, source) == []
    cloud.member.compute.reboot_server(server.id, "HARD")
    found = until(lambda: cloud.show(server), lambda found: found.status == "ACTIVE", "the server to run again")
    assert found.compute_host == source
    assert "precious" in cloud.driver(source).guest_read(server.id)


def test_auto_confirm_waits_while_a_host_is_down(
    cloud: Cloud, dead: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    server, source, target = moved(cloud, "cross")
    conductor = cloud.embedded.conductor
    look = AutoConfirm()
    cloud.option("resize_confirm_window", 1)
    for host in (source, target):
        dead(host, fenced=False)
        for _look in range(3):
            look(conductor._services, conductor._conductor)
        come_back(cloud, host)
    assert sum("waits to be confirmed by itself" in record.message for record in caplog.records) <= 2
    assert cloud.show(server).status == "VERIFY_RESIZE"
    assert "confirmResize" not in cloud.actions(server)
    until(
        lambda: look(conductor._services, conductor._conductor) or cloud.show(server).status,
        # It was off when its host came back.
        lambda status: status == "SHUTOFF",
        "the confirm",
    )


def test_what_a_confirm_or_revert_has_destroyed_keeps_it_from_nothing(cloud: Cloud, dead: Callable[..., None]) -> None:
    """The source's disks are gone already when the target dies: there is nothing left to be careful with."""
    server, source, target = moved(cloud, "cross")
    cloud.option("stuck_retry_interval", 0.2, "moves")
    cloud.option("first_pause", 0.05, "moves")
    cloud.option("rpc_response_timeout", 2)
    cloud.fail("status", "/bindings/", service="network", method="DELETE", status=400)
    cloud.member.compute.confirm_server_resize(server.id)
    moves = lambda: journal.of_server(cloud.parts.api_database, server.id)  # noqa: E731
    until(moves, lambda found: found[-1].state is MoveState.STUCK, "the confirm to be stuck")
    assert source not in cloud.hosts_of(server)
    dead(target)
    cloud.parts.devcloud.faults.clear()
    cloud.settle()
    assert cloud.migration(server).status == "confirmed"


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


def test_a_host_that_was_away_for_a_moment_starts_without_the_api_database(cloud: Cloud) -> None:
    server = cloud.boot()
    host = cloud.show(server).compute_host
    cloud.embedded.computes[host].stop()
    with away(cloud.parts.api_database.name):
        comes_back(cloud, host)
    assert cloud.show(server).status == "ACTIVE"


def test_a_host_that_was_dead_waits_for_the_api_database(
    cloud: Cloud, dead: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causeway.compute.missed_orders.PAUSE", 0.2)
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


def cleaned(cloud: Cloud, host: str) -> None:
    """Conductors look, as they do from time to time, until nothing is left on a host."""
    services = cloud.embedded.conductor._services
    until(lambda: cleaning.look(services) or left_on(cloud, host), lambda left: not left, f"{host} to be clean")


def test_what_could_not_be_done_when_the_host_came_back_is_done_later(cloud: Cloud, dead: Callable[..., None]) -> None:
    server, source, target = moved(cloud, "cross")
    dead(target)
    cloud.reverted(server)
    with away("cell1"):
        comes_back(cloud, target)
    assert cloud.hosts_of(server) == {source: "guest", target: "guest"}
    cleaned(cloud, target)
    assert cloud.hosts_of(server) == {source: "guest"}


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


def test_neither_a_host_nor_a_cell_holds_up_the_cleaning_of_another_host(
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


def counting(cloud: Cloud, methods: tuple[str, ...], first: Callable[[str], Verdict]) -> list[str]:
    """The hosts that are asked for one of these from now on; ``first`` says what becomes of the first order."""
    asked: list[str] = []

    def on_send(message: Outgoing) -> Verdict:
        if message.method not in methods or message.server is None:
            return Verdict.DELIVER
        asked.append(message.server)
        return first(message.server) if len(asked) == 1 else Verdict.DELIVER

    cloud.embedded.around.transports.on_send = on_send
    return asked


def attempts(cloud: Cloud, server: Any) -> int:
    """How often the present step of the server's move was tried."""
    move = journal.of_server(cloud.parts.api_database, server.id)[-1]
    return journal.steps(cloud.parts.api_database, move.id)[-1].attempt


@pytest.fixture
def impatient(cloud: Cloud) -> None:
    """Calls that nobody answers end soon (others have time, on a busy machine too); what can't go on is soon tried again."""
    for name in ("rpc_response_timeout", "long_rpc_timeout"):
        cloud.option(name, 5)
    for name in ("stuck_retry_interval", "first_pause"):
        cloud.option(name, 0.2, "moves")


@REACHES
@pytest.mark.usefixtures("impatient")
def test_a_move_that_waits_for_its_source_holds_no_worker_and_asks_nobody(
    cloud: Cloud, dead: Callable[..., None], reach: str
) -> None:
    server = cloud.boot(flavor=FLAVORS[reach][0])

    def dies(host: str) -> Verdict:
        dead(host, fenced=False)
        return Verdict.LOSE_REQUEST

    asked = counting(cloud, HAND_OVER, dies)
    cloud.member.compute.resize_server(server.id, FLAVORS[reach][1])
    until(lambda: asked, bool, "the source to be asked")
    keeper = cloud.embedded.conductor._keeper
    until(lambda: keeper.is_busy, lambda busy: not busy, "the move to be let go")
    move = journal.of_server(cloud.parts.api_database, server.id)[-1]
    assert (move.state, move.owner) == (MoveState.RUNNING, None)
    tries = attempts(cloud, server)
    until(lambda: attempts(cloud, server), lambda found: found > tries, "it to be tried again")
    assert len(asked) == 1
    come_back(cloud, asked[0])
    cloud.wait(server, "VERIFY_RESIZE")
    assert len(asked) == 2


@REACHES
@pytest.mark.usefixtures("impatient")
def test_a_revert_behind_its_pivot_asks_a_source_that_is_down_once(
    cloud: Cloud, dead: Callable[..., None], reach: str, caplog: pytest.LogCaptureFixture
) -> None:
    server, source, _target = moved(cloud, reach)

    def dies(host: str) -> Verdict:
        dead(host, fenced=False)
        return Verdict.LOSE_REQUEST

    asked = counting(cloud, ("restore_at_source", "finish_revert_resize"), dies)
    cloud.member.compute.revert_server_resize(server.id)
    moves = partial(journal.of_server, cloud.parts.api_database, server.id)
    until(lambda: moves()[-1].state, lambda state: state is MoveState.STUCK, "the revert to be stuck")
    until(lambda: attempts(cloud, server), lambda found: found > 2, "it to be tried again")
    # Parked after each attempt.
    begun = attempts(cloud, server)
    assert sum("is stuck" in record.message for record in caplog.records) >= begun - 1
    assert asked == [source]
    come_back(cloud, source)
    cloud.settle()
    assert asked == [source, source]
    assert cloud.show(server).compute_host == source


@pytest.mark.usefixtures("impatient")
def test_an_undo_does_not_ask_a_source_that_is_down(cloud: Cloud, dead: Callable[..., None]) -> None:
    server = cloud.boot_from_volume()
    source = cloud.show(server).compute_host
    cloud.without_patience()
    cloud.break_driver(["cell2-host1", "cell2-host2"], "spawn")
    asked: list[str | None] = []

    def on_send(message: Outgoing) -> Verdict:
        if message.method in FINISH:
            dead(source, fenced=False)
        asked.extend([message.server] if message.method == "restore_at_source" else [])
        return Verdict.DELIVER

    cloud.embedded.around.transports.on_send = on_send
    cloud.member.compute.resize_server(server.id, "gen2.small")
    moves = partial(journal.of_server, cloud.parts.api_database, server.id)
    until(lambda: [move.state for move in moves()], lambda states: states == [MoveState.STUCK], "the undo to be stuck")
    until(lambda: attempts(cloud, server), lambda found: found > 2, "it to be tried again")
    assert asked == []
    come_back(cloud, source)
    cloud.failed(server)
    assert asked == [source]


@pytest.mark.usefixtures("impatient")
def test_a_target_that_died_since_it_was_chosen_is_left_without_being_asked(
    cloud: Cloud, dead: Callable[..., None]
) -> None:
    server = cloud.boot()
    asked = counting(cloud, PREPARE, lambda _host: Verdict.DELIVER)
    cloud.fail("status", "/bindings$", service="network", method="POST", status=503)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    until(lambda: journal.of_server(cloud.parts.api_database, server.id)[-1].data["port_ids"], bool, "it to prepare")
    until(lambda: attempts(cloud, server), lambda found: found > 1, "it to be tried again")
    move = journal.of_server(cloud.parts.api_database, server.id)[-1]
    dead(move.data["selection"]["host"], fenced=False)
    cloud.parts.devcloud.faults.clear()
    found = cloud.wait(server, "VERIFY_RESIZE")
    assert asked == [found.compute_host] != [move.data["selection"]["host"]]
