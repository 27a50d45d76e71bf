"""Which volume or port a change of a server's devices is about, and who works on it: for whoever has to settle it."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The revisions before make the table as it is now: there is only something to add to older databases.
    known = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("device_changes")}
    if "resource_id" not in known:
        op.add_column("device_changes", sa.Column("resource_id", sa.String(36), nullable=True))
    if "owner" not in known:
        op.add_column("device_changes", sa.Column("owner", sa.String(255), nullable=True))
