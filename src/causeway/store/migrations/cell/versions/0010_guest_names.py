"""A server's row has the name of its guest, if that is not the computed one."""

import sqlalchemy as sa
from alembic import op

from causeway.store.columns import Name

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now: only older databases lack something.
    for table in ("instances", "shadow_instances"):
        if "guest_name" not in {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}:
            op.add_column(table, sa.Column("guest_name", Name, nullable=True))
