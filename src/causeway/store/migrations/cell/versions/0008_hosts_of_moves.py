"""The hosts of a server's move as columns of their own with indices, which the database computes from the migration context."""

import sqlalchemy as sa
from alembic import op

from causeway.store.columns import TextOfJson

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now: only older databases lack something.
    there = sa.inspect(op.get_bind())
    known = {column["name"] for column in there.get_columns("instances")}
    indices = {index["name"] for index in there.get_indexes("instances")}
    if "move_source_host" not in known:
        of_context = sa.Computed(TextOfJson("migration_context", "source_host"))
        op.add_column("instances", sa.Column("move_source_host", sa.String(255), of_context, nullable=True))
    if "move_dest_host" not in known:
        of_context = sa.Computed(TextOfJson("migration_context", "dest_host"))
        op.add_column("instances", sa.Column("move_dest_host", sa.String(255), of_context, nullable=True))
    for name in ("move_source", "move_dest"):
        if f"instances_{name}" not in indices:
            op.create_index(f"instances_{name}", "instances", [f"{name}_host"])
