"""Changes of devices record their volume or port, and the service that works on them, so that others can settle them."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The revision before makes the table as it is now: only older databases lack something.
    known = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("device_changes")}
    if "resource_id" not in known:
        op.add_column("device_changes", sa.Column("resource_id", sa.String(36), nullable=True))
    if "owner" not in known:
        op.add_column("device_changes", sa.Column("owner", sa.String(255), nullable=True))
