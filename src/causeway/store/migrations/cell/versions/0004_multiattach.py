"""Block devices record whether several servers may have the volume."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now: only older databases lack something.
    for table in ("block_device_mapping", "shadow_block_device_mapping"):
        if "multiattach" not in {known["name"] for known in sa.inspect(op.get_bind()).get_columns(table)}:
            op.add_column(table, sa.Column("multiattach", sa.Boolean, nullable=False, server_default=sa.false()))
