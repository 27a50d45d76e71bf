"""What dead hosts are to clean up when they are back."""

from alembic import op

from causeway.store.api import cleanups
from causeway.store.api_tables import ApiBase

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A new database has it from the first revision, which follows the tables; then nothing is done.
    ApiBase.metadata.create_all(op.get_bind(), tables=[cleanups.TABLE])
