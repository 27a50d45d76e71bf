"""The first schema."""

from alembic import op

from causeway.store.cell_tables import CellBase

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Until the first release the first migration follows the tables; later ones are written out.
    CellBase.metadata.create_all(op.get_bind())
