"""A step that transfers in rounds notes which one it is in, and since when."""

import sqlalchemy as sa
from alembic import op

from causeway.store.columns import Time

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    there = sa.inspect(op.get_bind())
    for table in ("move_steps", "shadow_move_steps"):
        known = {column["name"] for column in there.get_columns(table)}
        for name, kind in (("round", sa.Integer), ("bytes_since", Time)):
            if name not in known:
                op.add_column(table, sa.Column(name, kind, nullable=True))
