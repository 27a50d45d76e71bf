"""For lists of servers: mappings say whether their server is deleted, and have indices in the order of lists."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLE = "instance_mappings"


def upgrade() -> None:
    # The first revision makes the tables as they are now: only older databases lack something.
    there = sa.inspect(op.get_bind())
    if "deleted" not in {column["name"] for column in there.get_columns(TABLE)}:
        # Null in older rows, and in those that services of the older release still write. It is looked up later.
        op.add_column("instance_mappings", sa.Column("deleted", sa.Boolean, nullable=True))
    indices = {index["name"] for index in there.get_indexes(TABLE)}
    for name, columns in (
        ("instance_mappings_of_project", ["project_id", "deleted", "created_at", "instance_uuid"]),
        ("instance_mappings_of_all", ["deleted", "created_at", "instance_uuid"]),
        ("instance_mappings_going", ["queued_for_delete", "deleted"]),
    ):
        if name not in indices:
            op.create_index(name, TABLE, columns)
