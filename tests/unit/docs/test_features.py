"""docs/features.md has a row for every operation of ours, every filter and every weigher; the code says what is in them."""

from __future__ import annotations

import re
from pathlib import Path

from oslo_policy.policy import DocumentedRuleDefault

from causeway import policy
from causeway.api.routes import ROUTES
from causeway.scheduler import filters, weighers

PAGE = (Path(__file__).parents[3] / "docs/features.md").read_text()
RULES = [rule for rule in policy.list_rules() if isinstance(rule, DocumentedRuleDefault)]


def test_every_operation_of_ours_has_a_row() -> None:
    lines = ["| what | operations | rule |", "|---|---|---|"]
    for rule in RULES:
        if rule.name.startswith("causeway:"):
            operations = ", ".join(f"`{one['method']} {one['path']}`" for one in rule.operations)
            lines.append(f"| {rule.description} | {operations} | `{rule.name}` |")
    table = "\n".join(lines)
    assert table in PAGE, f"docs/features.md should have:\n{table}"


def test_every_filter_and_weigher_has_a_row() -> None:
    named = re.findall(r"(?m)^\| `(\w+(?:Filter|Isolation|Weigher))` \|", PAGE)
    assert sorted(named) == sorted([*filters.AVAILABLE, *weighers.AVAILABLE])


def test_rules_name_operations_that_there_are() -> None:
    routes = {(route.method, route.path, action) for route in ROUTES for action in ("", route.action)}
    named = {(one["method"], *_path(one["path"])) for rule in RULES for one in rule.operations}
    assert named - routes == set()


def test_every_route_of_ours_is_named_by_a_rule_of_ours() -> None:
    """Those of Nova are named by Nova's policy reference, which is not always the route."""
    ours = {
        (one["method"], _path(one["path"])[0]) for rule in RULES for one in rule.operations if "causeway:" in rule.name
    }
    assert {(route.method, route.path) for route in ROUTES if route.path.startswith("/os-causeway/")} - ours == set()


def test_every_resource_that_only_we_have_is_below_one_prefix() -> None:
    paths: dict[bool, set[str]] = {True: set(), False: set()}
    for rule in RULES:
        paths[rule.name.startswith("causeway:")] |= {_path(one["path"])[0] for one in rule.operations}
    assert {path for path in paths[True] - paths[False] if not path.startswith("/os-causeway/")} == set()


def _path(operation: str) -> tuple[str, str]:
    path, _space, action = operation.partition(" ")
    return path, action.strip("()")
