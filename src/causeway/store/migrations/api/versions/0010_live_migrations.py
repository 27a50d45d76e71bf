"""Migrations record the progress of live migrations."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Null in older rows, and in those that services of the older release still write.
COLUMNS = ("disk_remaining_bytes", "memory_total_bytes", "memory_processed_bytes", "memory_remaining_bytes")


def upgrade() -> None:
    # The first revision makes the tables as they are now: only older databases lack the columns.
    there = sa.inspect(op.get_bind())
    for table in ("migrations", "shadow_migrations"):
        present = {column["name"] for column in there.get_columns(table)}
        for name in COLUMNS:
            if name not in present:
                op.add_column(table, sa.Column(name, sa.BigInteger, nullable=True))
