"""Drains, and the servers of each."""

from alembic import op

from causeway.store.api import drains
from causeway.store.api_tables import ApiBase

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A new database has them from the first revision, which follows the tables; then nothing is done.
    ApiBase.metadata.create_all(op.get_bind(), tables=[drains.DRAINS, drains.SERVERS])
