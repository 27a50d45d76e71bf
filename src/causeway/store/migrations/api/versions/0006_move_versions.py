"""The versions of a move's recipe and memory, who could not run it, and since when its present step fails."""

import sqlalchemy as sa
from alembic import op

from causeway.store.columns import Name, Time

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Null in what is there, and in what services of the older version still write.
COLUMNS = (
    ("recipe_version", sa.Integer),
    ("memory_version", sa.Integer),
    ("parked", Name),
    ("failing_since", Time),
)


def upgrade() -> None:
    # Earlier revisions make the tables as they are now: there is only something to add to older databases.
    there = sa.inspect(op.get_bind())
    for table in ("moves", "shadow_moves"):
        present = {column["name"] for column in there.get_columns(table)}
        for name, kind in COLUMNS:
            if name not in present:
                op.add_column(table, sa.Column(name, kind, nullable=True))
