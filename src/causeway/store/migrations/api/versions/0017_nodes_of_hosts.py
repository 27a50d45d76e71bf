"""Host mappings say which node is the host's own."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now, so only older databases lack it.
    there = sa.inspect(op.get_bind())
    if "node_uuid" not in {column["name"] for column in there.get_columns("host_mappings")}:
        # Null until the host reports to a conductor of this release.
        op.add_column("host_mappings", sa.Column("node_uuid", sa.String(36), nullable=True))
    if "host_mappings_node" not in {index["name"] for index in there.get_indexes("host_mappings")}:
        op.create_index("host_mappings_node", "host_mappings", ["node_uuid"], unique=True)
