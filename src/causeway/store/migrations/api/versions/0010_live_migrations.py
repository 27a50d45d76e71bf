"""How far a live migration has come."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Null in what is there, and in what services of the older version still write.
COLUMNS = ("disk_remaining_bytes", "memory_total_bytes", "memory_processed_bytes", "memory_remaining_bytes")


def upgrade() -> None:
    # A new database has them from the first revision, which makes the tables as they are now.
    there = sa.inspect(op.get_bind())
    for table in ("migrations", "shadow_migrations"):
        present = {column["name"] for column in there.get_columns(table)}
        for name in COLUMNS:
            if name not in present:
                op.add_column(table, sa.Column(name, sa.BigInteger, nullable=True))
