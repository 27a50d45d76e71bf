"""Alembic's entry for the cell schema; runs on the connection that `causeway.store.schema` gives."""

from alembic import context

from causeway.store.cell_tables import CellBase

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=CellBase.metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
