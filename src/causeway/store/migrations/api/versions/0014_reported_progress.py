"""The progress of transfers has its own table; each move's row has its steps."""

import sqlalchemy as sa
from alembic import op

from causeway.store.api_tables import ApiBase

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    there = sa.inspect(op.get_bind())
    for table in ("moves", "shadow_moves"):
        present = {column["name"] for column in there.get_columns(table)}
        for name, kind in (("at_hand", sa.String(64)), ("sent", sa.BigInteger)):
            if name not in present:
                op.add_column(table, sa.Column(name, kind, nullable=True))
    # The first revision makes the tables as they are now, so only older databases lack it.
    ApiBase.metadata.create_all(op.get_bind(), tables=[ApiBase.metadata.tables["move_progress"]])
