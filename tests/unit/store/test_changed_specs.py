"""Changed request specs, in SQLite; `tests/integration/databases/test_changed_specs_on_servers.py` for the others."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from causeway.store.api import mappings
from causeway.store.database import Database, statements
from tests import spec_checks


@pytest.mark.parametrize("check", spec_checks.ALL)
def test_changed_specs_hold_in_sqlite(api: Database, check: Callable[[Database, str], None]) -> None:
    check(api, str(uuid.uuid4()))


def test_a_change_is_one_statement(api: Database) -> None:
    spec_checks.what_is_set_again_is_found(api, "server")
    before = statements.snapshot()[api.name]
    with api.write() as connection:
        mappings.set_in_spec_in(connection, "server", flavor=spec_checks.SMALL)
    assert statements.snapshot()[api.name] - before == 1
