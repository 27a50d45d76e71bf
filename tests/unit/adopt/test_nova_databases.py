"""Nova's databases are opened from a nova.conf, read in batches, and never written to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.adopt.nova import NovaCloud, tables
from causeway.adopt.nova.objects import UnknownRecord, load
from tests.unit.adopt.nova_cloud import ROWS, NovaOnDisk


def test_a_nova_conf_of_the_api_opens_every_cell(tmp_path: Path) -> None:
    with NovaCloud([NovaOnDisk(tmp_path).conf]) as nova:
        assert [(cell.name, cell.is_cell0) for cell in nova.cells] == [
            ("cell0", True),
            ("cell1", False),
            ("cell2", False),
        ]
        assert nova.cells[1].database.count(tables.INSTANCES) == len(ROWS["cell1"]["instances"])


def test_batches_have_every_row_once_in_order(tmp_path: Path) -> None:
    with NovaCloud([NovaOnDisk(tmp_path).conf]) as nova:
        batches = list(nova.cells[1].database.batches(tables.INSTANCES, 3))
    assert [len(batch) for batch in batches] == [3, 3, 1]
    assert [row["id"] for batch in batches for row in batch] == [row["id"] for row in ROWS["cell1"]["instances"]]


def test_what_an_older_release_lacks_is_none(tmp_path: Path) -> None:
    older = NovaOnDisk(tmp_path, release=24)
    with NovaCloud([older.conf]) as nova:
        database = nova.cells[1].database
        assert {row["compute_id"] for row in database.rows(tables.INSTANCES)} == {None}
        assert database.rows(tables.SHARE_MAPPING) == []


def test_a_url_with_placeholders_is_filled_in_from_the_database_option(tmp_path: Path) -> None:
    made = NovaOnDisk(tmp_path)
    made.execute("api", "UPDATE cell_mappings SET database_connection = '{scheme}:///{path}' WHERE name = 'cell1'")
    made.execute("api", "DELETE FROM cell_mappings WHERE name != 'cell1'")
    made.conf.write_text(made.conf.read_text() + f"[database]\nconnection = {made.url('cell1')}\n")
    with NovaCloud([made.conf]) as nova:
        assert nova.cells[0].database.has(tables.INSTANCES)


def test_a_session_can_not_write(tmp_path: Path) -> None:
    made = NovaOnDisk(tmp_path)
    before = made.content()
    with (
        NovaCloud([made.conf]) as nova,
        pytest.raises(errors.DatabaseFailed) as refused,
        nova.api._database.write() as connection,
    ):
        connection.execute(sa.delete(tables.FLAVORS))
    assert "readonly" in str(refused.value.details)
    assert made.content() == before


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE alembic_version SET version_num = 'ffffffffffff'", "has a schema of revision ffffffffffff"),
        ("DELETE FROM alembic_version", "has a schema of revision none"),
    ],
)
def test_a_schema_that_is_not_known_is_refused(tmp_path: Path, statement: str, sentence: str) -> None:
    made = NovaOnDisk(tmp_path)
    made.execute("cell2", statement)
    with pytest.raises(errors.Misconfigured, match=sentence):
        NovaCloud([made.conf])


def test_a_nova_conf_without_the_api_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nova.conf"
    path.write_text("[DEFAULT]\nhost = one\n")
    with pytest.raises(errors.Misconfigured, match="No URL of Nova's database API is known"):
        NovaCloud([path])


def test_envelopes_are_taken_off_at_every_depth() -> None:
    inner = {"nova_object.name": "B", "nova_object.version": "1.9", "nova_object.data": {"x": 1}}
    outer = {"nova_object.name": "A", "nova_object.version": "1.0", "nova_object.data": {"all": [inner], "one": inner}}
    assert load(json.dumps(outer), "it") == {
        "all": [{"x": 1}],
        "one": {"x": 1},
    }


@pytest.mark.parametrize(
    "text",
    ["{", '{"nova_object.data": {}}', '{"nova_object.version": "2.0", "nova_object.data": {}}', "[" * 100_000],
)
def test_what_is_not_known_is_refused_with_what_it_is(text: str) -> None:
    with pytest.raises(UnknownRecord, match="The flavor of server one"):
        load(text, "The flavor of server one")
