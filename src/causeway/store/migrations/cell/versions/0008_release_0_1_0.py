"""The schema of release 0.1.0, the first one."""

from alembic import op

# The shadow tables add themselves to the metadata.
from causeway.store import shadow_tables  # noqa: F401
from causeway.store.cell_tables import CellBase

revision = "0008"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    # It makes the tables as the code describes them now. So later revisions look for what is missing before they add it.
    CellBase.metadata.create_all(op.get_bind())
