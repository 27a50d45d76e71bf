"""What must hold of changed request specs in every kind of database."""

from __future__ import annotations

from typing import Any

import pytest

from causeway import errors
from causeway.model.flavor import Flavor
from causeway.store.api import mappings
from causeway.store.database import Database

SMALL = Flavor("1", "small", 1, 128, 1, extra_specs={"hw:a": "1", "hw:b": "2"})
LARGE = Flavor("2", 'large "\\ \N{SNOWMAN}', 2, 256, 2, extra_specs={"hw:a": "3"})
OTHERS: dict[str, Any] = {
    "nothing": None,
    "hints": {"any": ["1.50", 1.5, True, None, {"deep": {}}]},
    "name": "\N{LATIN SMALL LETTER U WITH DIAERESIS} \U0001f600 '; \"\\u0000",
}


def of(database: Database, uuid: str) -> dict[str, Any]:
    return mappings.get_spec(database, uuid)


def only_the_fields_that_are_set_are_changed(database: Database, uuid: str) -> None:
    with database.write() as connection:
        mappings.insert_spec_in(connection, uuid, OTHERS | {"flavor": {"of": "before"}})
        mappings.set_in_spec_in(connection, uuid, flavor=SMALL)
    small = of(database, uuid)
    assert small == OTHERS | {"flavor": small["flavor"]}
    assert small["flavor"]["extra_specs"] == SMALL.extra_specs
    with database.write() as connection:
        mappings.set_in_spec_in(connection, uuid, flavor=LARGE, availability_zone=None, new=["a"])
    large = of(database, uuid)
    assert large == OTHERS | {"flavor": large["flavor"], "availability_zone": None, "new": ["a"]}
    # No part of what was there before stays within a field.
    assert (large["flavor"]["name"], large["flavor"]["extra_specs"]) == (LARGE.name, LARGE.extra_specs)


def a_server_without_one_is_not_found(database: Database, uuid: str) -> None:
    with pytest.raises(errors.ServerNotFound), database.write() as connection:
        mappings.set_in_spec_in(connection, uuid, flavor=SMALL)


def what_is_set_again_is_found(database: Database, uuid: str) -> None:
    """A database may count the rows that it has changed, or those that it has found."""
    with database.write() as connection:
        mappings.insert_spec_in(connection, uuid, {})
        for _again in range(2):
            mappings.set_in_spec_in(connection, uuid, flavor=SMALL)


ALL = [only_the_fields_that_are_set_are_changed, a_server_without_one_is_not_found, what_is_set_again_is_found]
