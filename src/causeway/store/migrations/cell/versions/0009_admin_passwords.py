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
    if not _is_there("instances"):
        op.add_column("instances", sa.Column("admin_password", LongText, nullable=True))
    if not _is_there("shadow_instances"):
        op.add_column("shadow_instances", sa.Column("admin_password", LongText, nullable=True))


def _is_there(table: str) -> bool:
    return "admin_password" in {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}
