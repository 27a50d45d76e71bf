"""The first schema."""

from alembic import op

from causeway.store.api_tables import ApiBase

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    # It makes the tables as the code describes them now. So later revisions look for what is missing before they add it.
    ApiBase.metadata.create_all(op.get_bind())
