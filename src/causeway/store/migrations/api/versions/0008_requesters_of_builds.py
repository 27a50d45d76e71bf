"""Build requests record their requester."""

import sqlalchemy as sa
from alembic import op

from causeway.store.columns import LongText

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now: only older databases lack the columns.
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("build_requests")}
    # Null in older rows, and in those that services of the older release still write.
    if "requester" not in present:
        op.add_column("build_requests", sa.Column("requester", sa.JSON, nullable=True))
    if "sealed_token" not in present:
        op.add_column("build_requests", sa.Column("sealed_token", LongText, nullable=True))
