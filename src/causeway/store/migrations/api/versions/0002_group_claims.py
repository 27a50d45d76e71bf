"""Hosts that members of server groups are about to take."""

from alembic import op

from causeway.store.api import group_claims
from causeway.store.api_tables import ApiBase

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now, so only older databases lack it.
    ApiBase.metadata.create_all(op.get_bind(), tables=[group_claims.TABLE])
