"""Each driver method, order, call, message and named place of the code has its points, also what was added last."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import causeway
from causeway import clients, rpc
from causeway.faults import points
from causeway.faults.hooks import DRIVER_METHODS
from causeway.faults.points import every_point
from causeway.faults.routes import ROUTES
from causeway.rpc.declare import Client
from causeway.virt.driver import Driver

ROOT = Path(causeway.__file__).parent
POINTS = set(every_point())

# Methods of drivers without points. These read, or belong to the start and the end of a host.
READING = {
    "check_can_wake",
    "check_live_target",
    "check_volume_connectable",
    "check_volume_provider",
    "close",
    "confine",
    "console_listener",
    "console_output",
    "copy_faults",
    "diagnostics",
    "disk_bytes",
    "disk_room",
    "guest_name",
    "has_copy",
    "has_rescue_disk",
    "has_round",
    "host_facts",
    "host_hardware",
    "inspect",
    "is_rescued",
    "list_disks",
    "list_guests",
    "list_storage",
    "list_temporary_files",
    "live_address",
    "live_arrival",
    "live_migration_certificates",
    "live_migration_lacks",
    "live_progress",
    "live_source",
    "machine_type",
    "open_round",
    "own_folders",
    "port_devices",
    "presence",
    "reaches_disks",
    "saved_memory",
    "shared_disks",
    "start",
    "storage",
    "stored_image",
    "stores_images",
    "try_live_address",
    "volume_connector",
}
# These change a guest or a host, but nothing that a move or an operation of the journal would have to undo or to repeat.
WITHOUT_JOURNAL = {
    "discard_temporary_files",
    "extend_volume",
    "hold_tpm_key",
    "hold_volume_key",
    "limit_live_migration",
    "pause",
    "remove_from_storage",
    "resume",
    "set_clock",
    "set_password",
    "suspend",
    "trigger_crash_dump",
    "trim_guest",
    "unpause",
}


def test_every_method_of_drivers_has_points_or_is_said_to_need_none() -> None:
    methods = {name for name, _method in inspect.getmembers(Driver, inspect.isfunction) if not name.startswith("_")}
    assert methods - set(DRIVER_METHODS) == READING | WITHOUT_JOURNAL
    assert set(DRIVER_METHODS) <= methods


def test_every_order_of_the_journal_to_a_host_has_points() -> None:
    ordered: dict[str, set[str]] = {}
    for tree in _trees(ROOT / "compute"):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (decorators := _decorators(node)):
                ordered[node.name] = decorators
    assert len(ordered) > 30
    without = {name for name in ordered if not {f"compute.{name}.{side}" for side in ("before", "after")} <= POINTS}
    assert without == set()
    recorded = {name for name, decorators in ordered.items() if "fenced_and_then" in decorators}
    assert recorded == {name for name in ordered if f"compute.{name}.recorded" in POINTS}


def test_every_client_of_rpc_has_points() -> None:
    for module in pkgutil.walk_packages(rpc.__path__, f"{rpc.__name__}."):
        importlib.import_module(module.name)
    declared = {one for one in _subclasses(Client) if one.__module__.startswith("causeway.") and hasattr(one, "topic")}
    # What is the base of another one is asked for by that one.
    assert {one for one in declared if not one.__subclasses__()} == set(points.RPC_CLIENTS)


def test_every_place_of_the_code_that_can_fail_is_listed_and_every_listed_one_is_there() -> None:
    reached = set()
    texts = set()
    for tree in _trees(ROOT):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("injector.reach", "injector.fails"):
                reached |= {one.value for one in node.args if isinstance(one, ast.Constant)}
    assert reached - POINTS == set()
    named = {*points.DISK_POINTS, *points.WARM_POINTS, *points.LIVE_POINTS, *points.DRAIN_POINTS, *points.ADOPT_POINTS}
    assert len(reached) > 15
    assert named - texts == set()


def test_every_route_of_the_clients_is_in_the_table_and_no_other() -> None:
    listed = {route.split(" ", 2)[2] for route in ROUTES}
    calls = set(_calls_of_clients())
    assert {route for _method, route in calls} == listed
    known = {tuple(route.split(" ", 2)[1:]) for route in ROUTES}
    assert {call for call in calls if call[0] and call not in known} == set()


def _calls_of_clients() -> Iterator[tuple[str, str]]:
    """(method, route) of the clients' calls; the method is empty where it is not written beside the route."""
    for found in pkgutil.walk_packages(clients.__path__, f"{clients.__name__}."):
        if found.name.rpartition(".")[2] == "session":
            continue
        module = importlib.import_module(found.name)
        tree = ast.parse(Path(str(module.__file__)).read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Tuple) or (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)):
                parts = node.elts if isinstance(node, ast.Tuple) else [node.value]
            elif isinstance(node, ast.Call):
                parts = node.args
            else:
                continue
            values = [_text(part, vars(module)) for part in parts]
            for before, route in zip(["", *values], values, strict=False):
                if re.match(r"/(v\d[\d.]*/)?[a-z_{][^ ]*$", route):
                    yield before if before in ("GET", "POST", "PUT", "PATCH", "DELETE") else "", route


def _text(node: ast.expr, names: dict[str, object]) -> str:
    """The text of an expression of constants and names of its module; empty: it is none."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.Name):
        value = names.get(node.id)
        return value if isinstance(value, str) else ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left, names), _text(node.right, names)
        return left + right if left and right else ""
    return ""


def _decorators(node: ast.FunctionDef) -> set[str]:
    names = {ast.unparse(one.func if isinstance(one, ast.Call) else one) for one in node.decorator_list}
    return {name for name in names if name.startswith("fenced")}


def _trees(folder: Path) -> Iterator[ast.Module]:
    for file in sorted(folder.rglob("*.py")):
        if file.parent != ROOT / "faults":
            yield ast.parse(file.read_text())


def _subclasses(of: type[Client]) -> set[type[Client]]:
    return set(of.__subclasses__()).union(*(_subclasses(one) for one in of.__subclasses__()))
