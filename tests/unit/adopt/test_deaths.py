"""Whenever an import or a hand-back dies, before or after any of its transactions, repeating it completes it.

CI tries a sample; `CAUSEWAY_DEATHS_EVERY=1` tries every transaction.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from causeway.adopt.hand_back import HandBack, our_servers
from causeway.adopt.hand_back.compared import essence_of
from causeway.adopt.importing import import_cloud
from causeway.adopt.nova import NovaCloud, tables
from causeway.store.cell import instances
from causeway.store.database import Database, utcnow
from tests.unit.adopt.causeway_databases import OurDatabases, our_databases
from tests.unit.adopt.nova_cloud import NovaOnDisk
from tests.unit.adopt.test_hand_back import ACTIVE, HOSTS, OTHER, STOPPED, import_from, move_to_cell2

EVERY = int(os.environ.get("CAUSEWAY_DEATHS_EVERY", "9"))
# At least as many as either makes; where there is none of a number, the run just ends.
TRANSACTIONS = range(0, 45, EVERY)


class Death(BaseException):
    """Nothing handles it, as nothing handles the end of a process."""


@contextmanager
def dying_at(number: int, when: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ends the run at its transaction of this number, which is committed only if ``when`` is "after"."""
    begun = iter(range(1000))
    write = Database.write

    @contextmanager
    def counted(self: Database) -> Iterator[sa.Connection]:
        is_last = next(begun) == number
        with write(self) as connection:
            yield connection
            if is_last and when == "before":
                raise Death
        if is_last:
            raise Death

    with monkeypatch.context() as patch:
        patch.setattr(Database, "write", counted)
        try:
            yield
        except Death:
            return


@pytest.fixture
def nova(tmp_path: Path) -> NovaOnDisk:
    made = NovaOnDisk(tmp_path)
    made.execute("cell1", "DELETE FROM instances WHERE vm_state = 'resized' OR task_state IS NOT NULL")
    return made


def all_of(ours: OurDatabases) -> dict[str, Any]:
    """uuid -> (its cell, what counts of it)."""
    uuids = [
        each.uuid
        for cell in ours.cells.mappings()
        for each in instances.select(ours.cells.database(cell.uuid), instances.SELECT)
    ]
    assert len(uuids) == len(set(uuids)), "a server is in two cells"
    return {
        uuid: (cell, essence_of(server, lambda text: text))
        for uuid, (cell, server) in our_servers.read(ours.api, ours.cells, uuids).items()
    }


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", TRANSACTIONS)
def test_an_import_that_died_is_completed_by_the_next(
    nova: NovaOnDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, when: str
) -> None:
    def imported(ours: OurDatabases, size: int) -> bool:
        with NovaCloud([nova.conf]) as cloud:
            return import_cloud(cloud, ours.api, ours.cells, lambda _servers: None, size=size).is_unchanged

    for name in ("whole", "died"):
        (tmp_path / name).mkdir()
    with our_databases(tmp_path / "whole") as whole, our_databases(tmp_path / "died") as died:
        imported(whole, 500)
        with dying_at(number, when, monkeypatch):
            imported(died, 2)
        imported(died, 2)
        assert all_of(died) == all_of(whole)
        assert imported(died, 500)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", TRANSACTIONS)
def test_a_hand_back_that_died_is_completed_by_the_next(
    nova: NovaOnDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, when: str
) -> None:
    """Servers that changed, moved, and were deleted. Afterwards each has one row that lives."""
    for name in ("ours", "again"):
        (tmp_path / name).mkdir()
    with our_databases(tmp_path / "ours") as ours:
        import_from(nova, ours)
        instances.update(ours.of_cell("cell1"), ACTIVE, display_name="renamed")
        instances.update(ours.of_cell("cell1"), STOPPED, deleted=True, deleted_at=utcnow())
        move_to_cell2(ours, OTHER)

        def hand_back() -> bool:
            with NovaCloud([nova.conf], writable=True) as cloud:
                return HandBack(cloud, ours.api, ours.cells, HOSTS).run().is_unchanged

        with dying_at(number, when, monkeypatch):
            hand_back()
        hand_back()
        assert hand_back()
        expected = all_of(ours)
    expected.pop(STOPPED, None)
    with NovaCloud([nova.conf]) as cloud:
        living = [
            row["uuid"]
            for cell in cloud.cells
            for row in cell.database.rows(tables.INSTANCES, tables.INSTANCES.c.deleted == 0)
        ]
    assert sorted(living) == sorted(expected)
    with our_databases(tmp_path / "again") as again:
        import_from(nova, again)
        assert all_of(again) == expected
