"""The whole import, in an order in which what is named exists before."""

from __future__ import annotations

from collections.abc import Callable, Collection

from causeway import errors
from causeway.adopt.importing import services
from causeway.adopt.importing.api_things import import_kind
from causeway.adopt.importing.report import ImportReport
from causeway.adopt.importing.servers import Network, ServerImport
from causeway.adopt.importing.things import KINDS
from causeway.adopt.nova import NovaCloud
from causeway.store import sequences
from causeway.store.api import adopted_hosts, adoptions
from causeway.store.api import cells as cell_records
from causeway.store.cells import Cells
from causeway.store.database import Database


def import_cloud(
    nova: NovaCloud,
    api: Database,
    cells: Cells,
    network: Network,
    *,
    owned: Collection[str] = frozenset(),
    size: int = 500,
    progress: Callable[[int], None] = lambda _number: None,
) -> ImportReport:
    """Imports what has changed since the last import. ``owned``: hosts that are Causeway's already.

    Raises Misconfigured if a cell of Nova's has no counterpart here, with how to make it, Conflict if the cloud is Causeway's.
    """
    _require_cells(nova, cells)
    if adoptions.is_finished(api):
        raise errors.Conflict(
            "The cloud is Causeway's: Nova's records are old, and are not imported any more. See `causeway adopt finish --undo`."
        )
    report = ImportReport()
    for kind in KINDS:
        import_kind(nova, api, kind, report, size)
        with api.write() as connection:
            for table, _column in kind.tables:
                if "id" in table.c:
                    sequences.advance(connection, table)
    with api.write() as connection:
        adopted_hosts.note_imported_in(connection, cell_records.hosts(api))
    services.import_services(nova, api, cells, report, owned)
    ServerImport(nova, api, cells, network, report, owned, size, progress).run()
    return report


def _require_cells(nova: NovaCloud, cells: Cells) -> None:
    known = {cell.uuid for cell in cells.mappings()}
    missing = [cell for cell in nova.cells if cell.uuid not in known]
    if missing:
        commands = "\n".join(
            f"  causeway manage cell create --name {cell.name} --uuid {cell.uuid} --transport-url-file ... "
            "--database-connection-file ..."
            if not cell.is_cell0
            else "  causeway manage db sync --cell0-file ..."
            for cell in missing
        )
        raise errors.Misconfigured(
            f"Cells of Nova's have no counterpart here. Make them, with new databases:\n{commands}"
        )


__all__ = ["import_cloud"]
