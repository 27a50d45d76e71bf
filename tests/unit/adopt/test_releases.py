"""Each release of Nova since Xena: its schema is known, and its servers are taken over and handed back."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from causeway.adopt.nova import tables
from causeway.store.foreign_schema import NOVA_API_REVISIONS, NOVA_CELL_REVISIONS
from tests.unit.adopt import journey, nova_schemas
from tests.unit.adopt.nova_cloud import NovaOnDisk

_TABLES = {table.name: table for table in vars(tables).values() if isinstance(table, sa.TableClause)}
# What is read or written, by the release that was the first to have it.
_NEW = {
    26: {"block_device_mapping.encrypted"},
    28: {"instances.compute_id"},
    29: {f"share_mapping.{column.name}" for column in tables.SHARE_MAPPING.columns},
}


@pytest.mark.parametrize("release", nova_schemas.DIFFERENT)
def test_servers_are_taken_over_and_handed_back_with_the_schema_of(release: int, tmp_path: Path) -> None:
    journey.whole(NovaOnDisk(tmp_path, release=release), tmp_path)


@pytest.mark.parametrize("release", nova_schemas.HEADS)
def test_all_that_is_read_is_in_the_schema_of(release: int) -> None:
    there: set[str] = set()
    for kind in ("api", "cell"):
        engine = sa.create_engine("sqlite://")
        with engine.connect() as connection:
            nova_schemas.make(connection, kind, release)
            there |= {f"{name}.{each}" for name, found in nova_schemas.columns(connection).items() for each in found}
        engine.dispose()
    read = {f"{name}.{column.name}" for name, table in _TABLES.items() for column in table.columns}
    newer = (columns for first, columns in _NEW.items() if first > release)
    assert read - there == set[str]().union(*newer)


def test_the_schema_of_every_release_is_known() -> None:
    assert {heads["api"] for heads in nova_schemas.HEADS.values()} <= set(NOVA_API_REVISIONS)
    assert {heads["cell"] for heads in nova_schemas.HEADS.values()} <= set(NOVA_CELL_REVISIONS)
    assert nova_schemas.HEADS[nova_schemas.NEWEST] == {"api": NOVA_API_REVISIONS[-1], "cell": NOVA_CELL_REVISIONS[-1]}
