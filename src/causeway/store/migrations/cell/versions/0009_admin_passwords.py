"""A server's row has the password for its config drive while the guest is made."""

import sqlalchemy as sa
from alembic import op

from causeway.store.columns import LongText

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now: only older databases lack something.
    for table in ("instances", "shadow_instances"):
        if "admin_password" not in {known["name"] for known in sa.inspect(op.get_bind()).get_columns(table)}:
            op.add_column(table, sa.Column("admin_password", LongText, nullable=True))
