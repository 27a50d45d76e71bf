"""Tokens of consoles."""

from alembic import op

from causeway.store.api_tables import ApiBase

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now, so only older databases lack it.
    ApiBase.metadata.create_all(op.get_bind(), tables=[ApiBase.metadata.tables["console_auth_tokens"]])
