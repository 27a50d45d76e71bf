"""Each release of Nova since Xena: its schema is known, and its servers are adopted and handed back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from causeway.adopt.hand_back.nova_objects import OLDEST, NovaObjects
from causeway.adopt.nova import tables
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.instance import KeyPair
from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology
from causeway.scheduler.request import RequestSpec
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
def test_servers_are_imported_and_handed_back_with_the_schema_of(release: int, tmp_path: Path) -> None:
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


# Of objects that were a row of their own.
_PERSISTENT = frozenset({"created_at", "updated_at", "deleted_at", "deleted"})


@pytest.mark.parametrize("name", OLDEST)
def test_every_release_reads_the_oldest_version_that_is_written_of(name: str) -> None:
    """It reads its own version, and earlier ones of the same number before the point."""
    for described in nova_schemas.OBJECTS[name].values():
        assert _numbers(OLDEST[name])[0] == _numbers(described["version"])[0]
        assert _numbers(OLDEST[name]) <= _numbers(described["version"])


def test_every_field_that_is_written_is_known_to_every_release() -> None:
    for name, data in _objects(_written()):
        for described in nova_schemas.OBJECTS[name].values():
            if described["fields"]:
                assert set(data) - _PERSISTENT <= set(described["fields"].split()), name


def test_rows_of_earlier_releases_do_not_make_versions_older() -> None:
    def row(name: str, version: str) -> str:
        return json.dumps({"nova_object.name": name, "nova_object.version": version, "nova_object.data": {}})

    objects = NovaObjects([row("RequestSpec", "1.15"), row("RequestSpec", "1.9"), row("InstanceNUMACell", "1.4")])
    assert objects.made("RequestSpec", {})["nova_object.version"] == "1.15"
    assert objects.made("InstanceNUMACell", {})["nova_object.version"] == "1.6"


def _written() -> list[Any]:
    flavor, image = Flavor("small", "small", 1, 1, 1), ImageMeta("image", "name")
    topology = InstanceNUMATopology([InstanceNUMACell(0, [0], [], 1)])
    objects = NovaObjects([])
    texts = (
        objects.flavors(flavor),
        objects.key_pairs([KeyPair("name", "user", "public", "fingerprint")]),
        objects.numa_topology(topology, "uuid"),
        objects.trusted_certificates(["one"]),
        objects.request_spec(None, RequestSpec("uuid", "project", "user", flavor, image=image), image),
    )
    return [json.loads(text) for text in texts if text is not None]


def _objects(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, data) of each object in a value."""
    if isinstance(value, dict):
        if "nova_object.name" in value:
            yield value["nova_object.name"], value["nova_object.data"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _objects(each)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
