"""How far hosts are that are taken over from Nova."""

from alembic import op

from causeway.store.api_tables import ApiBase

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now, so only older databases lack it.
    ApiBase.metadata.create_all(op.get_bind(), tables=[ApiBase.metadata.tables["adopted_hosts"]])
