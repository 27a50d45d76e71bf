"""Clients and servers of each interface agree: every declared call has a method that takes it, and every method has a call."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session

from causeway.clients.placement.client import PlacementClient
from causeway.conf import new_config
from causeway.faults.points import RPC_CLIENTS
from causeway.model import versions
from causeway.model.found_host import FoundHypervisor
from causeway.model.host import CellMapping
from causeway.model.outcomes import OperationToken
from causeway.roles.compute import make_adopting_compute, make_compute
from causeway.roles.conductor import make_cell_conductor, make_conductor
from causeway.roles.scheduler import SchedulerService
from causeway.roles.surroundings import make_surroundings
from causeway.rpc import RpcServer
from causeway.rpc.cell_conductor import CellConductorClient
from causeway.rpc.compute import ComputeClient
from causeway.rpc.declare import HOLDERS_OF_TOKEN, Argument, Call, Client, calls_of
from causeway.rpc.endpoint import Method
from causeway.store.cells import Cells
from causeway.store.database import Database
from causeway.virt.simulated.driver import SimulatedDriver

CALLS = [(client, call) for client in RPC_CLIENTS for call in calls_of(client).values()]

# What clients have beside calls.
NO_CALLS = {"allows"}


def listening(folder: Path) -> Iterator[RpcServer]:
    """What the services of a cloud listen with, as they make it. None of them is started."""
    queue = "causeway-memory://contract"
    conf = new_config(transport_url=queue, state_path=str(folder))
    around = make_surroundings(conf, PlacementClient(Adapter(Session(), endpoint_override="http://127.0.0.1:1")))
    api = Database(f"sqlite:///{folder}/api", "the API")
    cells = Cells(api)
    cell = CellMapping("cell", "cell", queue, f"sqlite:///{folder}/cell")
    try:
        scheduler = SchedulerService(around, cells, "host")
        yield scheduler.server
        scheduler.stop()
        conductor = make_conductor(around, api, cells, "host")
        yield from conductor._servers
        yield from conductor._cells._servers_of(cell)
        yield make_cell_conductor(conf, around.transports, "host", api, queue)._server
        driver = SimulatedDriver("host", folder / "host")
        yield make_compute(around, "host", driver, queue, folder / "host")._server
        adopting = make_adopting_compute(
            around, "host", lambda: driver, queue, folder / "host", look=FoundHypervisor, nova_folders=[]
        )
        yield adopting._server
    finally:
        cells.close()
        api.close()
        around.close()


@pytest.fixture(scope="module")
def methods(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, tuple[Method, str]]]:
    """topic -> name of a method -> the method, and the newest version that its endpoint understands."""
    found: dict[str, dict[str, tuple[Method, str]]] = {}
    for server in listening(tmp_path_factory.mktemp("contract")):
        of_this: dict[str, tuple[Method, str]] = {}
        for endpoint in server.endpoints:
            if endpoint.namespace is None:
                assert not of_this.keys() & endpoint.methods.keys(), "two endpoints have a method of the same name"
                of_this |= {name: (method, endpoint.version) for name, method in endpoint.methods.items()}
        assert found.setdefault(server.topic, of_this).keys() == of_this.keys()
    return found


def fits(argument: Argument, taken: Any, *, may_lack: bool) -> bool:
    """Whether a method takes what a call sends. ``may_lack``: the argument has a default; None says that it was not sent."""
    if may_lack and get_origin(taken) in (UnionType, Union) and type(None) in get_args(taken):
        return set(get_args(taken)) in ({argument.type, type(None)}, set(get_args(argument.type)))
    return bool(argument.type == taken)


def named(client_and_call: tuple[type[Client], Call]) -> str:
    client, call = client_and_call
    return f"{client.topic}.{call.name}"


def test_each_interface_has_a_server(methods: dict[str, dict[str, tuple[Method, str]]]) -> None:
    assert methods.keys() == {client.topic for client in RPC_CLIENTS}


@pytest.mark.parametrize(("client", "call"), CALLS, ids=map(named, CALLS))
def test_a_call_has_a_method_that_takes_it(
    methods: dict[str, dict[str, tuple[Method, str]]], client: type[Client], call: Call
) -> None:
    assert call.name in methods[client.topic], f"no endpoint has {call.name}"
    method, understood = methods[client.topic][call.name]
    signature = method.signature
    assert call.message.keys() == signature.types.keys()
    for name, argument in call.message.items():
        taken, may_lack = signature.types[name], name in signature.optional
        assert fits(argument, taken, may_lack=may_lack), f"{name} is sent as {argument.type} and taken as {taken}"
        assert may_lack or not argument.is_optional, f"{name} may be missing"
    assert signature.result == call.result
    for version in call.versions:
        assert versions.numbers(version) <= versions.numbers(understood)


REPORTS = list(calls_of(CellConductorClient).values())


@pytest.mark.parametrize("call", REPORTS, ids=lambda call: call.name)
def test_a_report_says_where_it_names_the_host_that_sends_it(call: Call) -> None:
    """Or a host could send it in the name of another one, though it is signed."""
    assert call.reporter is not None, "declare the reporter of the call (causeway.rpc.declare)"
    if call.reporter == HOLDERS_OF_TOKEN:
        assert call.message["token"].type is OperationToken
    for path in call.reporter:
        first, *others = path.split(".")
        found = call.message[first].type
        for name in others:
            found = get_type_hints(found)[name]
        assert found is str, path
    # Whatever says "host" in a report is a host's name that has to be its sender's.
    assert {path for name, argument in call.message.items() for path in hosts_in(name, argument.type)} == set(
        call.reporter
    )


def hosts_in(path: str, kind: Any) -> Iterator[str]:
    if path.rpartition(".")[2] == "host":
        yield path
    elif is_dataclass(kind):
        for name, inner in get_type_hints(kind).items():
            yield from hosts_in(f"{path}.{name}", inner)


@pytest.mark.parametrize(
    "client", [each for each in RPC_CLIENTS if each is not CellConductorClient], ids=lambda client: client.topic
)
def test_hosts_call_nobody_but_the_conductor_of_their_cell(client: type[Client]) -> None:
    assert [call.name for call in calls_of(client).values() if call.reporter is not None] == []


@pytest.mark.parametrize("client", RPC_CLIENTS, ids=lambda client: client.topic)
def test_a_method_has_a_call_or_a_reason(
    methods: dict[str, dict[str, tuple[Method, str]]], client: type[Client]
) -> None:
    uncalled = methods[client.topic].keys() - calls_of(client).keys()
    assert uncalled == set()


@pytest.mark.parametrize("client", RPC_CLIENTS, ids=lambda client: client.topic)
def test_a_client_has_only_calls(client: type[Client]) -> None:
    """A stub that nobody declared would do nothing."""
    public = {name for name, _method in inspect.getmembers(client, inspect.isfunction) if not name.startswith("_")}
    assert public - calls_of(client).keys() == NO_CALLS


@pytest.mark.parametrize(("client", "call"), CALLS, ids=map(named, CALLS))
def test_a_call_is_of_a_version_of_the_history(client: type[Client], call: Call) -> None:
    assert set(call.versions) <= client.history.keys()


@pytest.mark.parametrize("client", RPC_CLIENTS, ids=lambda client: client.topic)
def test_a_history_goes_up(client: type[Client]) -> None:
    known = [versions.numbers(version) for version in client.history]
    assert known == sorted(set(known))
    assert all(client.history.values())


def test_the_history_of_computes_counts_services_too() -> None:
    first = versions.COMPUTE[0].service
    assert [version.service for version in versions.COMPUTE] == list(range(first, versions.SERVICE + 1))
    assert list(ComputeClient.history)[-1] == versions.RPC
