"""What bodies and query parameters may be, and how a refusal reads."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import jsonschema
import pytest

from causeway import errors
from causeway.api import routes, validation
from causeway.api.schemas import common

SCHEMA = common.body("thing", common.properties(["name"], name=common.NAME, size=common.POSITIVE_INTEGER))


def test_a_refusal_names_field_value_and_reason() -> None:
    with pytest.raises(errors.ValidationFailed) as refused:
        validation.check_body({"thing": {"name": "n", "size": 0}}, SCHEMA)
    assert refused.value.message == (
        "Invalid input for field/attribute size. Value: 0. 0 is less than the minimum of 1"
    )
    with pytest.raises(errors.ValidationFailed) as refused:
        validation.check_query({"limit": ["x"]}, common.query({"limit": common.many(common.LIMIT)}))
    assert refused.value.message.startswith("Invalid input for query parameters limit. Value: x.")
    with pytest.raises(errors.ValidationFailed) as refused:
        validation.check_body({}, SCHEMA)
    assert refused.value.message == "'thing' is a required property"


def test_the_legacy_endpoint_lets_unknown_fields_pass() -> None:
    body = {"thing": {"name": "n", "colour": "red"}, "more": 1}
    validation.check_body(body, SCHEMA, legacy=True)
    with pytest.raises(errors.ValidationFailed):
        validation.check_body(body, SCHEMA)


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [
        ("uuid", ["70a599e0-31e7-49b7-b260-868f441e862b", "70a599e031e749b7b260868f441e862b"], ["", "70a599e0", "x" * 36]),
        ("base64", ["", "aGk=", "aGk=\n", "a-G-k=", "%%%%"], ["a", "aGk", "ä"]),
        ("cidr", ["192.0.2.0/24", "192.0.2.1/24", "2001:db8::/32"], ["192.0.2.0", "192.0.2.0/33", "x/1"]),
        ("ipv4", ["192.0.2.1"], ["192.0.2", "192.0.2.256", "::1"]),
        ("ipv6", ["2001:db8::1"], ["192.0.2.1", "2001:db8::g"]),
        ("ip", ["192.0.2.1", "2001:db8::1"], ["host"]),
        ("date-time", ["2026-08-01T12:00:00Z", "2026-08-01", "2026-08-01T12:00:00+02:00"], ["yesterday", "", "2026-13-01"]),
        ("name", ["a", "a b", "ä", "日本"], ["", " a", "a ", "\t", "a\nb", "a\x00"]),
        ("az_name", ["az1"], ["az1:host", " az1", ""]),
        ("uri", ["http://host/path"], ["host", "//host"]),
    ],
)  # fmt: skip
def test_formats_accept_good_and_refuse_bad_values(format: str, good: list[str], bad: list[str]) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"value": {"type": "string", "format": format}}}
    for value in good:
        validation.check_body({"value": value}, schema)
    for value in bad:
        with pytest.raises(errors.ValidationFailed):
            validation.check_body({"value": value}, schema)


@pytest.mark.parametrize("size", [0, "0", 2**31, str(2**31), "", "1\n", "-1", 1.5, True, None])
def test_bounds_hold_for_numbers_in_strings_too(size: Any) -> None:
    with pytest.raises(errors.ValidationFailed):
        validation.check_body({"thing": {"name": "n", "size": size}}, SCHEMA)


def test_a_last_line_feed_is_no_way_around_a_pattern() -> None:
    for metadata in ({"key\n": "value"}, {"": "value"}, {"key": 1}):
        with pytest.raises(errors.ValidationFailed):
            validation.check_body(metadata, common.METADATA)
    validation.check_body({"key": "value\n"}, common.METADATA)


def test_times_become_utc() -> None:
    assert validation.parse_time("2026-08-01T12:00:00+02:00") == datetime(2026, 8, 1, 10)
    assert validation.parse_time("2026-08-01T12:00:00Z") == datetime(2026, 8, 1, 12)
    assert validation.parse_time("0001-01-01T00:00:00+23:00") is None


def test_every_version_has_one_row_per_operation_and_one_schema() -> None:
    """No two rows of the table serve the same method, path, action and version; schemas do not overlap either."""
    seen: set[tuple[str, str, str | None, int]] = set()
    for route in routes.ROUTES:
        for minor in range(1, 105):
            if route.serves(minor):
                key = (route.method, route.path, route.action, minor)
                assert key not in seen, key
                seen.add(key)
        for schemas in (route.handler.body, route.handler.query):
            for minor in range(1, 105):
                fitting = [one for one in schemas or [] if one[0] <= minor and (one[1] is None or minor <= one[1])]
                assert len(fitting) <= 1, (route.path, minor)


def test_every_schema_is_one() -> None:
    for route in routes.ROUTES:
        for schemas in (route.handler.body, route.handler.query):
            for _first, _last, schema in schemas or []:
                jsonschema.Draft4Validator.check_schema(schema)
