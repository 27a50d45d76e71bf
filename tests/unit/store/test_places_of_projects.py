"""Where a project's servers are, in SQLite; `tests/integration/databases/test_places_on_servers.py` for the others."""

from __future__ import annotations

from causeway.store.api import quotas
from causeway.store.database import Database, statements
from tests import place_checks


def test_limits_and_places_are_read_together_in_sqlite(api: Database) -> None:
    place_checks.limits_and_places_are_read_together(api)
    before = statements.snapshot()[api.name]
    quotas.effective(api, "project", "user", places=True)
    assert statements.snapshot()[api.name] - before == 1


def test_cells_are_found_by_their_index(api: Database) -> None:
    """However many servers a project has, a few look-ups say whether it has any in a cell."""
    names = {"of_owner": "", "of_project": "", "of_user": ""}
    compiled = quotas._WITH_PLACES.params(names).compile(api.engine, compile_kwargs={"render_postcompile": True})
    with api.read() as connection:
        plan = connection.exec_driver_sql(
            f"EXPLAIN QUERY PLAN {compiled}", tuple(compiled.params[name] for name in compiled.positiontup or ())
        )
        steps = [row[-1] for row in plan if "instance_mappings" in row[-1]]
    assert steps == ["SEARCH instance_mappings USING INDEX instance_mappings_cells (project_id=? AND cell_uuid=?)"]
