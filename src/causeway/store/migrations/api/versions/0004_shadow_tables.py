"""Shadow tables, for the migrations and moves of deleted servers that are archived."""

from alembic import op

from causeway.store.shadow_tables import API_SHADOWS

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in API_SHADOWS.values():
        table.create(op.get_bind(), checkfirst=True)
