"""Schemas of answers: every route has one in every version, strict; what differs is named, and no values are."""

from __future__ import annotations

from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.api.answers.parts import (
    EMPTY,
    NEVER,
    TEXT,
    changing,
    either,
    many,
    null,
    of_type,
    record,
    shown_as,
    since,
    until,
    versions,
)
from causeway.api.differences import differences_of, fits
from causeway.api.gone import gone
from causeway.api.request import ApiRequest, Handler, Response, handler, schema_for
from causeway.api.routes import ROUTES
from causeway.api.unavailable import Unavailable
from causeway.api.validation import validator_of
from causeway.api.versions import MAX
from causeway.model.drains import Window

MINORS = range(1, MAX.minor + 1)


def label(route: Any) -> str:
    return f"{route.method} {route.label} {route.first}"


@pytest.mark.parametrize("route", ROUTES, ids=label)
def test_every_route_says_what_it_answers_in_every_version(route: Any) -> None:
    served = [minor for minor in MINORS if route.serves(minor)]
    if route.handler.answer is NEVER:
        assert route.handler.statuses in ((), (410,))
        return
    assert [minor for minor in served if schema_for(route.handler.answer, minor) is None] == []
    assert [minor for minor in served if not route.handler.statuses_at(minor)] == []


def test_what_never_answers_is_gone_or_known_to_be_unavailable() -> None:
    unavailable = {one.operation for one in Unavailable}
    elsewhere = ("/os-baremetal-nodes", "/servers/{server_id}/shares")
    silent = {
        f"{route.method} {route.path}"
        for route in ROUTES
        if route.handler.answer is NEVER and route.handler is not gone and not route.path.startswith(elsewhere)
    }
    assert silent - unavailable == set()


def strict(schema: Any) -> list[Any]:
    """Objects in a schema whose keys are not named, and not said to be of any name either."""
    if isinstance(schema, list):
        return [found for part in schema for found in strict(part)]
    if not isinstance(schema, dict):
        return []
    found = [found for part in schema.values() for found in strict(part)]
    if "properties" in schema and schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        found.append(schema)
    return found


@pytest.mark.parametrize("route", ROUTES, ids=label)
def test_schemas_are_valid_and_strict(route: Any) -> None:
    for _first, _last, schema in route.handler.answer:
        jsonschema.Draft4Validator.check_schema(schema)
        assert strict(schema) == []


def test_versions_are_those_in_which_something_changes() -> None:
    thing = record(
        {
            "id": TEXT,
            "old": until(3, TEXT),
            "tags": since(5, many(TEXT)),
            "kind": changing((1, 4, TEXT), (5, None, null(TEXT))),
        },
        {"note": since(9, TEXT)},
    )
    found = versions(record({"thing": thing}))
    assert [(first, last) for first, last, _schema in found] == [(1, 3), (4, 4), (5, 8), (9, None)]
    shown = [schema["properties"]["thing"] for _first, _last, schema in found]
    assert [sorted(schema["properties"]) for schema in shown] == [
        ["id", "kind", "old"],
        ["id", "kind"],
        ["id", "kind", "tags"],
        ["id", "kind", "note", "tags"],
    ]
    assert shown[2]["required"] == shown[3]["required"] == ["id", "tags", "kind"]


def test_a_choice_of_which_a_version_has_one_is_that_one() -> None:
    found = versions(either(record({"a": TEXT}), since(7, record({"b": TEXT}))))
    assert found[0][2] == record({"a": TEXT})
    assert len(found[1][2]["anyOf"]) == 2


def test_a_model_is_shown_with_all_its_fields() -> None:
    schema = of_type(Window)
    assert set(schema["required"]) == {"days", "start", "end", "zone"}
    assert schema["properties"]["days"] == many({"type": "integer"})


def answers(schemas: Any, *statuses: int) -> Handler:
    def run(_request: ApiRequest) -> Response:
        raise NotImplementedError

    return handler(answer=schemas, statuses=statuses or (200,))(run)


THING = answers(shown_as("thing", record({"id": TEXT, "size": null({"type": "integer"})}, {"password": TEXT})))


def differences(body: Any, of: Handler = THING, status: int = 200) -> list[str]:
    return differences_of(Response(status, body), of, 104)


def test_what_differs_is_named_without_its_value() -> None:
    assert differences({"thing": {"id": "1", "size": None, "password": "secret"}}) == []
    assert differences({"thing": {"id": "1"}}) == ["thing lacks size"]
    assert differences({"thing": {"id": "1", "size": 1, "token": "secret"}}) == ["thing also has token"]
    assert differences({"thing": {"id": 1, "size": 1}}) == ["thing.id is of type int, not string"]
    assert differences(None) == ["the whole is of type NoneType, not object"]
    for wrong in ({"id": "1", "size": "secret"}, {"id": "1", "size": 1, "password": ["secret"]}):
        (said,) = differences({"thing": wrong})
        assert "secret" not in said


def test_parts_that_are_kept_as_json_are_looked_into() -> None:
    assert differences({"thing": msgspec.Raw(b'{"id": "1", "size": 2}')}) == []
    assert differences({"thing": msgspec.Raw(b'{"id": "1"}')}) == ["thing lacks size"]


def test_a_status_that_is_not_named_and_a_body_where_none_is() -> None:
    assert differences({"thing": {"id": "1", "size": 1}}, status=202) == ["its status is 202, not 200"]
    assert differences({}, answers(EMPTY, 202), 202) == ["the whole is of type dict, not null"]
    assert differences({}, answers(NEVER)) == ["there is no schema of this version"]


SCHEMAS = [schema for route in ROUTES for _first, _last, schema in route.handler.answer]
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.just(1.0) | st.just("") | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)


@st.composite
def bodies(draw: st.DrawFn, schema: Any) -> Any:
    """Bodies that fit a schema, or nearly: each part is something else with a small probability."""
    if draw(st.integers(0, 29)) == 13:
        return draw(JSON)
    if "anyOf" in schema:
        return draw(bodies(draw(st.sampled_from(schema["anyOf"]))))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "pattern" in schema:
        return draw(st.from_regex(schema["pattern"]))
    kinds = schema.get("type")
    match draw(st.sampled_from(kinds)) if isinstance(kinds, list) else kinds:
        case "object":
            known = schema.get("properties", {})
            body = {name: draw(bodies(part)) for name, part in known.items() if draw(st.integers(0, 19)) != 13}
            return body | (draw(st.dictionaries(st.text(max_size=3), JSON, max_size=1)) if not known else {})
        case "array":
            return (
                [draw(bodies(schema["items"])) for _number in range(draw(st.integers(0, 2)))]
                if "items" in schema
                else []
            )
        case "string":
            formats = {
                "uuid": st.uuids().map(str),
                "ipv4": st.ip_addresses(v=4).map(str),
                "ipv6": st.ip_addresses(v=6).map(str),
            }
            return draw(formats.get(schema.get("format"), st.text(max_size=3)))
        case "integer":
            return draw(st.integers(-2, 2**40))
        case "boolean":
            return draw(st.booleans())
        case "null":
            return None
        case "number":
            return draw(st.floats(allow_nan=False))
    return draw(JSON)


@pytest.mark.parametrize("name", ["uuid", "ipv4", "ipv6"])
@pytest.mark.parametrize(
    "value",
    [
        "0f8fad5b-d9cb-469f-a165-70867728950e", "0F8FAD5BD9CB469FA16570867728950E", "-0f8fad5b--d9cb469fa16570867728950e-",
        "{0f8fad5b-d9cb-469f-a165-70867728950e}", "urn:uuid:0f8fad5b-d9cb-469f-a165-70867728950e",
        "0f8fad5b-d9cb-469f-a165-70867728950", "0f8fad5b-d9cb-469f-a165-70867728950e0", "0f8fad5b-d9cb-469f-a165-70867728950g",
        "0f8fad5b-d9cb-469f-a165-70867728950e\n", "0f8fad5b_d9cb469fa16570867728950e", "", "10.0.0.1", "255.255.255.255",
        "256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4\n", " 1.2.3.4", "1.2.3.\u0664", "::1", "fe80::1%eth0", "1::2::3",
        "::ffff:1.2.3.4",
    ],
)  # fmt: skip
def test_both_validators_agree_on_formats(name: str, value: str) -> None:
    for schema in (
        {"type": "string", "format": name},
        {"anyOf": [{"format": name, "pattern": "^[0-9]"}, {"enum": ["x"]}]},
    ):
        assert fits(value, schema) == validator_of(schema).is_valid(value)


def test_a_body_is_encoded_once() -> None:
    answer = Response(200, {"thing": {"id": "1", "size": 1}})
    assert differences_of(answer, THING, 104) == []
    assert answer.encoded() is answer.encoded()


THINGS = answers(shown_as("things", many(record({"id": TEXT}))))


def test_of_a_long_list_some_rows_are_looked_at_and_others_each_time() -> None:
    rows = [{"id": "1"}] * 30 + [{"id": "1", "token": "secret"}]
    answer = Response(200, {"things": rows})
    assert differences_of(answer, THINGS, 104) == ["things.30 also has token"]
    found = [differences_of(answer, THINGS, 104, rows=20) for _time in range(100)]
    assert {len(differences) for differences in found} == {0, 1}
    assert len(answer.body["things"]) == len(msgspec.json.decode(answer.encoded())["things"]) == 31
    assert differences_of(Response(200, {"things": rows[-20:]}), THINGS, 104, rows=20) == ["things.19 also has token"]


@settings(max_examples=300)
@given(st.data())
def test_both_validators_agree_on_which_answers_fit(data: st.DataObject) -> None:
    schema = data.draw(st.sampled_from(SCHEMAS))
    body = msgspec.json.decode(msgspec.json.encode(data.draw(bodies(schema))))
    assert fits(body, schema) == validator_of(schema).is_valid(body)
