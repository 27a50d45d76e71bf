"""Drains keep what was measured of them, and their servers what their moves took and for how long guests stood still."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    there = sa.inspect(op.get_bind())
    for table, name, kind in (
        ("drains", "pacing", sa.JSON),
        ("drain_servers", "took", sa.Float),
        ("drain_servers", "stood_still", sa.Float),
    ):
        if name not in {column["name"] for column in there.get_columns(table)}:
            op.add_column(table, sa.Column(name, kind, nullable=True))
