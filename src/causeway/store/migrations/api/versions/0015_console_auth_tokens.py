"""Tokens of consoles."""

from alembic import op

from causeway.store.api_tables import ApiBase

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A new database has it from the first revision, which follows the tables; then nothing is done.
    ApiBase.metadata.create_all(op.get_bind(), tables=[ApiBase.metadata.tables["console_auth_tokens"]])
