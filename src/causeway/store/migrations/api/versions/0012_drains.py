"""Drains, and the servers of each."""

from alembic import op

from causeway.store.api import drains
from causeway.store.api_tables import ApiBase

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now, so only older databases lack them.
    ApiBase.metadata.create_all(op.get_bind(), tables=[drains.DRAINS, drains.SERVERS])
