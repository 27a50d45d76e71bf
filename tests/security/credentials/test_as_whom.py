"""Every call to another service is in the table of `as_whom`, with whom it is made as, and the client makes it so.

A new call needs a new row, or a place in one: its author says what was checked before. Hosts are not in the table: they have
credentials of their own, and no user's.
"""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import causeway
from causeway.clients.identity import IdentityClient
from causeway.clients.image import ImageClient
from causeway.clients.keys import KeyClient
from causeway.clients.limits import LimitsClient
from causeway.clients.network import NetworkClient
from causeway.clients.placement.client import PlacementClient
from causeway.clients.vendordata import Vendordata
from causeway.clients.volume import VolumeClient
from tests.security.credentials.as_whom import TABLE

ROOT = Path(causeway.__file__).parent
CLIENTS = {
    "images": ImageClient,
    "volumes": VolumeClient,
    "network": NetworkClient,
    "identity": IdentityClient,
    "keys": KeyClient,
}
# Not the control plane: the services around in a test cloud, hosts, and the clients themselves.
ELSEWHERE = ("clients/", "devcloud/", "compute/", "virt/")
KINDS = frozenset({"ONLY_USER", "OF_SERVER", "SERVICE", "named", "of_server_with"})
METHODS = {
    name: {each for each, _value in inspect.getmembers(client, callable) if not each.startswith("_")}
    for name, client in CLIENTS.items()
}
# Tables of routes name handlers, which have the names of such methods.
HANDLERS = frozenset({"api/routes.py", "api/proxies/routes.py", "api/servers/routes.py"})
# Answers without a call.
SILENT = frozenset({"network.has_extension"})


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(ELSEWHERE) and name not in HANDLERS:
            yield name, tree_of(path)


def method_of(used: ast.Attribute) -> str | None:
    """``volumes.show`` for ``run.services.volumes.show``."""
    owner = used.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    name = name.lstrip("_")
    if name == "client" and used.attr == "forward":
        return "client.forward"
    if name == "device_records" and used.attr == "reserve_volume":
        return "device_records.reserve_volume"
    return f"{name}.{used.attr}" if name in METHODS and used.attr in METHODS[name] else None


@cache
def calls() -> dict[str, list[tuple[str, ast.Call | None]]]:
    """method -> (file, call); without the call where the method itself is passed on."""
    found: dict[str, list[tuple[str, ast.Call | None]]] = defaultdict(list)
    for name, tree in sources():
        called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            method = method_of(node) if isinstance(node, ast.Attribute) else None
            if method == "client.forward":
                for each in ("images", "volumes", "network"):
                    found[f"{each}.forward"].append((name, called.get(id(node))))
            elif method is not None and method not in SILENT:
                found[method].append((name, called.get(id(node))))
    return found


def test_every_call_has_a_row_and_every_row_a_call() -> None:
    in_table = {(row.method, file) for row in TABLE for file in row.files.split()}
    in_source = {(method, file) for method, made in calls().items() for file, _call in made}
    assert in_source - in_table == set(), "say as whom these calls are made, and what was checked before"
    assert in_table - in_source == set()


def test_every_row_says_why() -> None:
    assert [row.method for row in TABLE if len(row.checked) < 20] == []


def test_no_method_is_called_by_a_name_that_the_table_would_not_see() -> None:
    """Methods whose names only the clients have are found whatever their owner is called."""
    ambiguous = {"show", "create", "delete", "list_all", "forward", "upload", "download", "stream", "network_info"}
    ambiguous |= {"migration_status", "group_names", "is_gone", "show_of_server"}
    known = {name for names in METHODS.values() for name in names} - ambiguous
    hidden = [
        f"{file}: {ast.unparse(node)}"
        for file, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in known
        and method_of(node) is None
        # A function of ours with the name of a method, in a module that is not a client.
        and not (isinstance(node.value, ast.Name) and node.value.id == "checks")
    ]
    assert hidden == []


def functions_of(client: type) -> dict[str, ast.FunctionDef]:
    """The methods of a client and its parts, by name; those of subclasses first."""
    found: dict[str, ast.FunctionDef] = {}
    for kind in client.__mro__:
        path = Path(inspect.getsourcefile(kind) or "") if kind.__module__.startswith("causeway.clients") else None
        if path is None:
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
                for each in node.body:
                    if isinstance(each, ast.FunctionDef):
                        found.setdefault(each.name, each)
    return found


def kind_of(node: ast.AST) -> str | None:
    """The kind that a node names; ``named`` and ``of_server_with`` are called."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS:
        return node.func.id
    return node.id if isinstance(node, ast.Name) and node.id in KINDS and node.id.isupper() else None


def kinds_in(client: type, name: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """As whom a method makes its calls, through all methods that it calls. ``called_as``: as its caller says."""
    functions = functions_of(client)
    function = functions.get(name)
    if function is None or name in seen:
        return set()
    found: set[str] = set()
    for node in ast.walk(function):
        kind = kind_of(node)
        if kind is not None:
            found.add(kind)
        elif isinstance(node, ast.Attribute) and node.attr == "_cache":
            # It reads what it does not remember through methods of the client.
            found |= kinds_in(client, "_read_networks", seen | {name})
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            found |= kinds_in(client, node.attr, seen | {name})
    given = [*function.args.args, *function.args.kwonlyargs]
    if not name.startswith("_") and any(argument.arg == "called_as" for argument in given):
        found.add("called_as")
    return found


def kinds_at(method: str, call: ast.Call | None) -> set[str]:
    """As whom one call of a method is made."""
    owner, _dot, name = method.partition(".")
    of_method = {"called_as"} if owner == "device_records" else kinds_in(CLIENTS[owner], name)
    if "called_as" not in of_method:
        return of_method
    given = [each.value for each in call.keywords if each.arg == "called_as"] if call is not None else []
    if not given:
        # The default.
        return of_method - {"called_as"}
    names = {node.id for node in ast.walk(given[0]) if isinstance(node, ast.Name)}
    if names == {"called_as"}:
        return {"called_as"}
    return {kind for node in ast.walk(given[0]) if (kind := kind_of(node))}


@pytest.mark.parametrize("method", sorted({row.method for row in TABLE}))
def test_calls_are_made_as_the_table_says(method: str) -> None:
    said: dict[str, set[str]] = defaultdict(set)
    for row in TABLE:
        if row.method == method:
            for file in row.files.split():
                said[file] |= set(row.as_whom.split())
    made: dict[str, set[str]] = defaultdict(set)
    for file, call in calls()[method]:
        made[file] |= kinds_at(method, call)
    # A variable that was decided a line before.
    if method == "device_records.reserve_volume":
        made["devices/making.py"] = {"named", "OF_SERVER"}
    assert made == said


def test_hosts_call_only_what_needs_no_user() -> None:
    """They have no user's token: a call that needs one would fail there, and one that does not would be made for anybody."""
    made: set[str] = set()
    for folder in ("compute", "virt"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(tree_of(path)):
                method = method_of(node) if isinstance(node, ast.Attribute) else None
                if method is not None and not method.startswith("client."):
                    owner, _dot, name = method.partition(".")
                    made |= kinds_in(CLIENTS[owner], name)
    assert made - {"called_as"} == {"OF_SERVER", "SERVICE"}


@pytest.mark.parametrize("client", [PlacementClient, LimitsClient, Vendordata])
def test_clients_without_users_get_no_context(client: type) -> None:
    """They are called with our own credentials, so no context decides."""
    methods = [value for name, value in inspect.getmembers(client, callable) if not name.startswith("_")]
    assert methods
    assert not any("context" in inspect.signature(each).parameters for each in methods)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("for_work", {"context.py", "operations/engine.py"}),
        ("checked_of", {"operations/engine.py", "requests/requesters.py"}),
        ("is_without_identity", {"clients/connections.py", "clients/keys.py", "clients/session.py"}),
        ("remember_expired", {"clients/connections.py", "clients/session.py"}),
    ],
)
def test_one_place_decides_as_whom_calls_are_made(name: str, where: set[str]) -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Name) and node.id == name)
        or (isinstance(node, ast.Attribute) and node.attr == name)
        or (isinstance(node, ast.FunctionDef) and node.name == name)
    }
    assert found == where


def test_only_the_session_and_the_client_of_keys_ask_for_the_decision() -> None:
    """castellan calls Barbican by itself, so its client can't use the session."""
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and node.module == "causeway.clients.rights"
        if {each.name for each in node.names} & {"decide", "Rights", "NOT_YOURS", "EXPIRED"}
    }
    assert found == {"clients/keys.py", "clients/session.py"}
