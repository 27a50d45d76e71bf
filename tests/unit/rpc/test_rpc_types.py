"""Whatever the model describes crosses RPC unchanged."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pkgutil
from datetime import datetime
from typing import Any, TypeGuard, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causeway import model
from causeway.model.flavor import Flavor
from causeway.rpc.endpoint import from_wire, to_wire

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
PLAIN: dict[object, st.SearchStrategy[Any]] = {
    Any: JSON_VALUES,
    str: TEXT,
    int: st.integers(-(2**31), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    datetime: st.datetimes(),
}


def is_record(kind: Any) -> TypeGuard[type]:
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct))


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type as the model uses types; a plain ``Any`` is anything that JSON can say."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if origin is list:
        return st.lists(values(arguments[0]), max_size=2)
    if origin is frozenset:
        return st.frozensets(values(arguments[0]), max_size=2)
    if origin is tuple and Ellipsis in arguments:
        return st.lists(values(arguments[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(*map(values, arguments), max_size=2)
    if arguments:
        return st.one_of(*map(values, arguments))
    if is_record(hint):
        return st.builds(hint, **{name: values(of) for name, of in get_type_hints(hint).items()})
    return st.from_type(hint)


def model_types() -> list[type]:
    found: dict[str, type] = {}
    for module in pkgutil.iter_modules(model.__path__, f"{model.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if is_record(value):
                found[name] = value
    return [found[name] for name in sorted(found)]


@pytest.mark.parametrize("kind", model_types(), ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
def test_every_record_of_the_model_survives(kind: type, data: st.DataObject) -> None:
    record = data.draw(values(kind))
    wire = json.loads(json.dumps(to_wire(record)))
    assert from_wire(wire, kind) == record


def test_fields_of_a_newer_service_are_ignored_and_missing_ones_have_their_defaults() -> None:
    wire = {"flavorid": "1", "name": "f", "vcpus": 1, "memory_mb": 2, "root_gb": 3, "invented_later": True}
    assert from_wire(wire, Flavor) == Flavor("1", "f", 1, 2, 3)


def test_keys_may_be_numbers() -> None:
    assert from_wire(json.loads(json.dumps(to_wire({1: "a"}))), dict[int, str]) == {1: "a"}
