"""Writes things of the API database (`things`): each with what was imported of it, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from causeway.adopt.importing.digests import digest_of
from causeway.adopt.importing.report import ImportReport
from causeway.adopt.importing.things import Kind, Thing
from causeway.adopt.nova import NovaCloud
from causeway.store.api import adoptions
from causeway.store.api.adoptions import Adoption
from causeway.store.database import Database, utcnow


def import_kind(nova: NovaCloud, api: Database, kind: Kind, report: ImportReport, size: int) -> None:
    """Imports all things of a kind, and deletes those that Nova has no longer. What others made here stays."""
    seen: set[str] = set()
    for batch in kind.read(nova, size):
        seen.update(thing.key for thing in batch)
        _import_batch(api, kind, batch, report)
    for known in adoptions.batches(api, kind.name, size):
        _delete(api, kind, [each for each in known if each.key not in seen], report)


def _import_batch(api: Database, kind: Kind, batch: Sequence[Thing], report: ImportReport) -> None:
    counts, digests = report.of(kind.name), {thing.key: digest_of(thing.rows) for thing in batch}
    known = adoptions.of_keys(api, kind.name, list(digests))
    for thing in batch:
        counts.add(digests[thing.key])
    changed = [thing for thing in batch if thing.key not in known or known[thing.key].digest != digests[thing.key]]
    try:
        _write(api, kind, changed, digests, set(known))
    except sa.exc.IntegrityError:
        for thing in changed:
            _write_one(api, kind, thing, digests, set(known), report)
    else:
        counts.written += len(changed)


def _write_one(
    api: Database, kind: Kind, thing: Thing, digests: dict[str, str], known: set[str], report: ImportReport
) -> None:
    try:
        _write(api, kind, [thing], digests, known)
    except sa.exc.IntegrityError:
        why = f"a {kind.name} of this id or name was made here: delete or rename one of them, and import again"
        report.leave_out(kind.name, [(thing.key, thing.name, why)])
    else:
        report.of(kind.name).written += 1


def _write(api: Database, kind: Kind, things: Sequence[Thing], digests: dict[str, str], known: set[str]) -> None:
    """Raises IntegrityError if one of them is here already, and was not imported."""
    if not things:
        return
    now = utcnow()
    with api.write() as connection:
        for table, column in reversed(kind.tables):
            owners = [thing.owner for thing in things if thing.key in known]
            if owners:
                connection.execute(table.delete().where(table.c[column].in_(owners)))
        for table, _column in kind.tables:
            rows = [row for thing in things for row in thing.rows.get(table.name, [])]
            if rows:
                connection.execute(table.insert(), rows)
        adoptions.save_in(
            connection, [Adoption(kind.name, each.key, digests[each.key], now, each.nova_id) for each in things]
        )


def _delete(api: Database, kind: Kind, gone: list[Adoption], report: ImportReport) -> None:
    if not gone:
        return
    owners = [each.key if each.nova_id is None or kind.name == "host" else each.nova_id for each in gone]
    with api.write() as connection:
        for table, column in reversed(kind.tables):
            connection.execute(table.delete().where(table.c[column].in_(owners)))
        adoptions.delete_in(connection, kind.name, [each.key for each in gone])
    report.of(kind.name).deleted += len(gone)
