"""Moves record their requester, and short operations their steps."""

import sqlalchemy as sa
from alembic import op

from causeway.store.columns import LongText

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# Null in older rows, and in those that services of the older release still write.
COLUMNS = (
    ("requester", sa.JSON),
    ("sealed_token", LongText),
    ("steps", sa.JSON),
    ("step", sa.String(64)),
    ("hosts", LongText),
)


def upgrade() -> None:
    # The first revision makes the tables as they are now: only older databases lack the columns.
    there = sa.inspect(op.get_bind())
    for table in ("moves", "shadow_moves"):
        present = {column["name"] for column in there.get_columns(table)}
        for name, kind in COLUMNS:
            if name not in present:
                op.add_column(table, sa.Column(name, kind, nullable=True))
