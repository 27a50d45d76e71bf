"""Instances record the move that has closed them to writers, because it has read them for the last time."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now: only older databases lack something.
    for table in ("instances", "shadow_instances"):
        if "closed_by" not in {known["name"] for known in sa.inspect(op.get_bind()).get_columns(table)}:
            op.add_column(table, sa.Column("closed_by", sa.String(36), nullable=True))
