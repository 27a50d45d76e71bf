"""A table of changes to servers' volumes and ports that are under way: no move begins meanwhile."""

from alembic import op

from causeway.store.cell.device_changes import TABLE

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    TABLE.create(op.get_bind(), checkfirst=True)
