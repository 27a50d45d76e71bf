"""Which cells have servers of a project is found without reading its mappings."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The first revision makes the tables as they are now, so only older databases lack it.
    there = sa.inspect(op.get_bind())
    if "instance_mappings_cells" not in {index["name"] for index in there.get_indexes("instance_mappings")}:
        op.create_index("instance_mappings_cells", "instance_mappings", ["project_id", "cell_uuid"])
