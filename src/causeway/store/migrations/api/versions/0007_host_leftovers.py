"""The cleanups that dead hosts have to do when they are back."""

from alembic import op

from causeway.store.api import cleanups
from causeway.store.api_tables import ApiBase

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now, so only older databases lack it.
    ApiBase.metadata.create_all(op.get_bind(), tables=[cleanups.TABLE])
