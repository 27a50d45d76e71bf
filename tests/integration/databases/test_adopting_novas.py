"""A Nova whose databases are in PostgreSQL or MariaDB is adopted and handed back, with the schema of any release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.adopt import journey, nova_schemas
from tests.unit.adopt.nova_cloud import NovaOnDisk


@pytest.mark.parametrize("release", nova_schemas.DIFFERENT)
def test_servers_are_imported_and_handed_back_with_the_schema_of(
    release: int, new_database: Callable[[str], str], tmp_path: Path
) -> None:
    nova = NovaOnDisk(tmp_path, release=release, url_of=lambda name: new_database(f"{name}_{release}"))
    # Tables that Nova made in MariaDB have no characters of four bytes.
    is_narrow = nova.url("api").startswith("mysql")
    name = journey.NAME.replace("\N{ROCKET}", "\N{REPLACEMENT CHARACTER}") if is_narrow else journey.NAME
    journey.whole(nova, tmp_path, name=name)
