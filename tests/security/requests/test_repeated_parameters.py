"""Every query parameter of every route, thousands of times: refused, or the same answer as once, for the same statements."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest

from causeway.api.dispatch import LISTS, MOST_PARAMETERS, MOST_VALUES, Route, query_schema
from causeway.api.routes import ROUTES
from causeway.store.database import statements
from tests.functional.conftest import Caller, Cloud

MINOR = 96
_PARAMETER = re.compile(r"{[^}]*}")


def _parameters(route: Route) -> list[str]:
    schema = query_schema(route, MINOR) or {}
    return sorted(schema.get("properties", {}))


REPEATED = [
    pytest.param(route.path, name, id=f"{route.path}?{name}")
    for route in ROUTES
    if route.method == "GET" and route.serves(MINOR)
    for name in [*_parameters(route), "unknown"]
]


def _ask(caller: Caller, path: str, pairs: list[tuple[str, str]]) -> tuple[Any, int]:
    before = sum(statements.snapshot().values())
    query = "&".join(f"{quote(name)}={quote(value)}" for name, value in pairs)
    answer = caller.get(f"{_PARAMETER.sub('x', path)}?{query}", version=f"2.{MINOR}")
    return answer, sum(statements.snapshot().values()) - before


@pytest.mark.parametrize(("path", "name"), REPEATED)
def test_too_many_values_are_refused_before_any_is_used(admin: Caller, path: str, name: str) -> None:
    answer, sent = _ask(admin, path, [(name, "x")] * 3000)
    assert answer.status == 400, answer.json
    assert f"at most {MOST_VALUES}" in str(answer.json)
    assert len(str(answer.json)) < 400, "the values are not echoed"
    assert sent == 0


@pytest.mark.parametrize(("path", "name"), REPEATED)
def test_as_many_as_are_accepted_are_answered_as_one_is(admin: Caller, path: str, name: str) -> None:
    for value in ("x", "1"):
        once, _sent = _ask(admin, path, [(name, value)])
        answer, _sent = _ask(admin, path, [(name, value)] * MOST_VALUES)
        assert answer.status in (400, once.status), answer.json


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_list_in_one_value_is_bounded_as_well(admin: Caller, name: str) -> None:
    assert _ask(admin, "/servers", [(name, ",".join(f"t{number}" for number in range(5000)))])[0].status == 400
    assert _ask(admin, "/servers", [(name, ",".join(f"t{number}" for number in range(MOST_VALUES)))])[0].status == 200


def test_different_parameters_are_bounded(admin: Caller) -> None:
    answer, sent = _ask(admin, "/servers", [(f"p{number}", "x") for number in range(MOST_PARAMETERS + 1)])
    assert answer.status == 400
    assert sent == 0


def test_a_repeated_status_finds_the_same_servers_for_the_same_statement(cloud: Cloud, admin: Caller) -> None:
    cloud.host("host1")
    server = cloud.server(host="host1", node="host1", project_id="admin")
    sent = []
    for times in (1, MOST_VALUES):
        statements.log = []
        try:
            answer, _sent = _ask(admin, "/servers", [("status", "active")] * times)
            sent.append(sorted(statements.log))
        finally:
            statements.log = None
        assert [one["id"] for one in answer.json["servers"]] == [server.uuid]
    assert sent[0] == sent[1]


def test_a_thousand_statuses_are_never_an_empty_list_and_no_cell_is_down(cloud: Cloud, admin: Caller) -> None:
    cloud.host("host1")
    cloud.server(host="host1", node="host1", project_id="admin")
    answer, _sent = _ask(admin, "/servers", [("status", "active")] * 1000)
    assert answer.status == 400
    assert not cloud.services.cells.any_down
    assert len(_ask(admin, "/servers", [("status", "active")])[0].json["servers"]) == 1


def test_pairs_of_sort_keys_and_directions_stay_pairs(admin: Caller) -> None:
    pairs = [("sort_key", "host"), ("sort_dir", "asc"), ("sort_key", "uuid"), ("sort_dir", "asc")] * 20
    assert _ask(admin, "/servers", pairs)[0].status == 200
    assert _ask(admin, "/servers", [("sort_dir", "asc"), ("sort_dir", "asc"), ("sort_key", "host")])[0].status == 400
