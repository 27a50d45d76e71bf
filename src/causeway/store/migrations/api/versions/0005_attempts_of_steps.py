"""Attempts of a step are counted in its one row, with the first and the last error and the events of the server's action."""

import sqlalchemy as sa
from alembic import op

from causeway.store.columns import Time

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    there = sa.inspect(op.get_bind())
    for table in ("move_steps", "shadow_move_steps"):
        known = {column["name"] for column in there.get_columns(table)}
        for name, kind in (("tried_at", Time), ("first_error", sa.JSON()), ("events", sa.JSON())):
            if name not in known:
                op.add_column(table, sa.Column(name, kind, nullable=True))
