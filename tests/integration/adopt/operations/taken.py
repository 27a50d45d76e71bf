"""A cloud of Nova's with a server for each operation that ends a guest's first run, after all its hosts were taken over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from causeway.api import gone
from causeway.api.routes import ROUTES
from tests.functional.processes.own_process import until
from tests.integration.adopt import outside
from tests.integration.adopt.adopted_cloud import AdoptedCloud
from tests.integration.adopt.answers import PATIENCE
from tests.integration.adopt.nova import MICROVERSION
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.population import SPECIMENS, Population, Populator, Specimen

Test = TypeVar("Test", bound=Callable[..., None])

SERVER = "/servers/{server_id}"
#: what the tests here try: actions by their names, other operations as "GET /servers/{server_id}"
tried: set[str] = set()


def _in_cell1() -> Specimen:
    return Specimen()


def _in_cell2() -> Specimen:
    return Specimen("gen2.small")


#: name -> what Nova makes of that name; a test that ends a guest's first run has one of its own
WANTED: Mapping[str, Specimen] = {
    "untouched": SPECIMENS["datavol"],
    "rebooted": _in_cell1(),
    "power cycled": _in_cell2(),
    "started anew": _in_cell1(),
    "saved": _in_cell2(),
    "in need": _in_cell1(),
    "rebuilt": _in_cell2(),
    "resized": _in_cell1(),
    "reverted": SPECIMENS["disks"],
    "migrated": SPECIMENS["bootvol"],
    "put away": _in_cell2(),
    "live": Specimen("any.small"),
    "evacuated": _in_cell1(),
    "deleted": _in_cell2(),
    **{name: SPECIMENS[name] for name in ("suspended", "shelved", "rescued", "locked", "softdel")},
    "switched off": SPECIMENS["stopped"],
}


@dataclass(frozen=True)
class State:
    """What was to be seen of a server from outside before an operation. ``newest``: what its guest said last."""

    name: str
    ports: Mapping[str, tuple[Any, ...]]
    newest: outside.Tick


class TakenCloud:
    """``cloud`` has the services and hosts, ``adopted`` the API."""

    def __init__(self, cloud: NovaCloud, populator: Populator, population: Population, adopted: AdoptedCloud) -> None:
        self.cloud, self.adopted, self._population, self.populator = cloud, adopted, population, populator

    def server(self, name: str) -> str:
        """The uuid of one of `WANTED`."""
        return self._population.servers[name]

    def volume(self, name: str) -> str:
        """The data volume that is attached to it."""
        return self._population.volumes[name]

    # orders

    def call(
        self, method: str, path: str, body: Any = None, *, admin: bool = False, version: str = MICROVERSION
    ) -> Any:
        """The answer to a request of the user whose server it is. Raises AssertionError if it is refused."""
        answer = self.ask(method, path, body, admin=admin, version=version)
        assert answer.status_code < 300, f"{method} {path} {body}: {answer.status_code} {answer.text}"
        return answer.json() if answer.text else None

    def ask(self, method: str, path: str, body: Any = None, *, admin: bool = False, version: str = MICROVERSION) -> Any:
        """The same, whatever the answer."""
        compute = (self.adopted.admin if admin else self.adopted.member).compute
        return compute.request(path, method, json=body, microversion=version)

    def act(self, uuid: str, action: str, given: Any = None, *, status: str | None = None, admin: bool = False) -> Any:
        """``status``: waits until the server has it. Raises AssertionError if the action fails, or comes to another end."""
        answer = self.call("POST", f"/servers/{uuid}/action", {action: given}, admin=admin)
        if status is not None:
            until(partial(self._has_or_failed, uuid, status), bool, f"{uuid} to become {status}", PATIENCE)
        return answer

    def _has_or_failed(self, uuid: str, status: str) -> bool:
        """Raises AssertionError if its newest action failed, which leaves a server as it was."""
        newest = self.call("GET", f"/servers/{uuid}/os-instance-actions", admin=True)["instanceActions"][0]
        assert newest["message"] is None, newest
        found = self.call("GET", f"/servers/{uuid}", admin=True)["server"]
        assert found["status"] != "ERROR", found["fault"]
        return found["status"] == status and found["OS-EXT-STS:task_state"] is None

    def delete_all(self) -> None:
        """The servers are gone when this returns, for Nova as well once their hosts are handed back."""
        for name in WANTED:
            self.ask("POST", f"/servers/{self.server(name)}/action", {"forceDelete": None}, admin=True)
        for name in WANTED:
            self.await_gone(self.server(name))

    def await_gone(self, uuid: str) -> None:
        until(lambda: self.ask("GET", f"/servers/{uuid}").status_code, (404).__eq__, f"{uuid} to be gone", PATIENCE)
        assert uuid not in {guest.uuid for guest in outside.guests(self.cloud)}

    # looks

    def state(self, uuid: str) -> State:
        return State(
            outside.guest_of(self.cloud, uuid).name, self.adopted.ports(uuid), outside.ticks(self.cloud, uuid)[-1]
        )

    def host(self, uuid: str) -> str:
        """Where its only guest is."""
        return outside.guest_of(self.cloud, uuid).host

    def check_runs_on(self, uuid: str, before: State) -> None:
        """The server has one guest, of the same name and ports, which has its memory and its disk still."""
        tick = outside.await_lines(self.cloud, uuid, before.newest.lines)
        assert tick.lines - tick.number == before.newest.lines - before.newest.number
        self._check_guest(uuid, before)

    def check_has_booted(self, uuid: str, before: State) -> None:
        """The server has one guest, of the same name and ports, which has been started anew with the disk that it had."""
        self.await_boot(uuid, before.newest)
        self._check_guest(uuid, before)

    def await_boot(self, uuid: str, before: outside.Tick) -> None:
        """The guest has counted anew; its disk has at least the lines that it had."""

        def booted() -> bool:
            return any(tick.lines - tick.number >= before.lines for tick in outside.ticks(self.cloud, uuid))

        until(booted, bool, f"{uuid} to boot with the {before.lines} lines of its disk", outside.PATIENCE)

    def _check_guest(self, uuid: str, before: State) -> None:
        guest = outside.guest_of(self.cloud, uuid)
        assert (guest.name, guest.pid is not None, guest.is_paused) == (before.name, True, False)
        until(
            lambda: self.adopted.ports(uuid), before.ports.__eq__, f"the ports of {uuid} to be as they were", PATIENCE
        )


def tries(*operations: str) -> Callable[[Test], Test]:
    """Says which operations a test tries: a name of an action, or a method and a path below that of a server.

    Raises ValueError for one that is in no route.
    """
    names = {each if " " not in each else each.replace(" ", f" {SERVER}", 1) for each in operations}
    if unknown := names - all_operations():
        raise ValueError(f"no operation on a server: {unknown}")
    tried.update(names)
    return lambda test: test


def all_operations() -> set[str]:
    """Those of the Compute API's newest microversion that are about one server."""
    return {
        route.action or f"{route.method} {route.path}"
        for route in ROUTES
        if route.path.startswith(SERVER) and route.last is None and route not in gone.ROUTES
    }
