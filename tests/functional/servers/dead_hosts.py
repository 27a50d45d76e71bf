"""What tests of hosts that die for good share; the fixture ``dead`` (see conftest) switches hosts off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from causeway import errors
from causeway.conductor.upkeep import cleaning
from causeway.model.migration import EVACUATION
from causeway.model.states import MigrationStatus, PowerState
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import cleanups
from causeway.store.database import Database
from tests.functional.servers.broken_hosts import force_down, start
from tests.functional.servers.moves_cloud import Cloud, until

# Moves that were released are looked for every third of a lease.
CLOUD: dict[str, Any] = {"overrides": {"moves": {"lease": 6.0}}}
# Seconds in which a host starts, if nothing holds it up.
START = 20.0
REACHES = pytest.mark.parametrize("reach", ["cross", "same"])
FLAVORS = {"cross": ("gen1.small", "gen2.small"), "same": ("any.small", "any.medium")}
FINISH = "finish_snapshot_based_resize_at_dest"
PREPARE = "prep_snapshot_based_resize_at_dest"
HAND_OVER = "prep_snapshot_based_resize_at_source"


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
                raise errors.DatabaseFailed(f"The database of {name} is unreachable.")
            return work(database)

        return ask

    with pytest.MonkeyPatch.context() as patched:
        for each in ("read", "write", "ping_anew"):
            patched.setattr(Database, each, refuse(getattr(Database, each)))
        yield


def runs_on(cloud: Cloud, host: str, server: Any) -> None:
    """The guest runs on, whatever was said of its host."""
    guest = cloud.driver(host).files.guests[server.id]
    guest.power_state = PowerState.RUNNING
    cloud.driver(host).files.save(guest)


def moved(cloud: Cloud, reach: str, **fields: Any) -> tuple[Any, str, str]:
    server = cloud.boot(flavor=FLAVORS[reach][0], **fields)
    source = cloud.show(server).compute_host
    cloud.driver(source).guest_write(server.id, "precious")
    return server, source, cloud.resized(server, FLAVORS[reach][1]).compute_host


def left_on(cloud: Cloud, host: str) -> list[str]:
    return [found.what for found in cleanups.listed(cloud.parts.api_database, host)]


def cleaned(cloud: Cloud, host: str) -> None:
    """Conductors look, as they do from time to time, until nothing is left on a host."""
    services = cloud.embedded.conductor._services

    def look() -> list[str]:
        cleaning.look(services)
        return left_on(cloud, host)

    until(look, lambda left: not left, f"{host} to be clean")


def caught_up(cloud: Cloud, names: set[str]) -> None:
    """The servers of a test are gone, and hosts that are back keep nothing of them: the next test begins with clean hosts."""
    cloud.heal()
    cloud.settle()
    cloud.clean()
    services = cloud.embedded.conductor._services

    def left() -> set[str]:
        cleaning.look(services)
        waiting = cleanups.hosts(services.api, evacuation=EVACUATION, evacuated=MigrationStatus.DONE)
        return names & {host for host, _cell_uuid in waiting}

    until(left, lambda found: not found, "the hosts that were dead to be clean")


def fault_of(cloud: Cloud, server: Any, ask: Callable[[str], None]) -> Any:
    """Asks for something that ends with the server in VERIFY_RESIZE as before; the fault that says why."""
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


def dies_when(
    cloud: Cloud, dead: Callable[..., None], method: str | tuple[str, ...], verdict: Verdict, *, fenced: bool
) -> None:
    """The host of an order is dead from the moment it is sent, or from the moment it was carried out."""
    done: list[str] = []
    methods = (method,) if isinstance(method, str) else method

    def on_send(message: Outgoing) -> Verdict:
        if message.method not in methods or done or message.server is None:
            return Verdict.DELIVER
        done.append(message.server)
        if verdict is Verdict.LOSE_REQUEST:
            dead(message.server, fenced=fenced)
        return verdict

    cloud.embedded.around.transports.on_send = on_send
