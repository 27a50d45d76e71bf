"""Alembic's entry for the api schema; runs on the connection that `causeway.store.schema` gives."""

from alembic import context

from causeway.store.api_tables import ApiBase

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=ApiBase.metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
