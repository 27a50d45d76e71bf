"""A plug-in of the ``openstack`` client: commands for what only Causeway's Compute API has.

It talks to the API and imports nothing of the services, so that ``pip install causeway[client]`` beside an operator's client is
all that it needs. What is new in it:

- `asking`: requests, pages, long polls; the two ways in which they fail.
- `words`: puts operations, explanations and audits into words. `causeway.cli` uses both, too.
- `plugin`: what the ``openstack`` client looks for; `columns`: cells of tables that are plain data for ``-f json``.
- `layout`, `whole_tables`: tables that break no id, host or step at any width. `causeway.cli` uses the first, too.
- the commands: `operations`, `moves`, `cells`, `audit`, `drains`, `drain_requests`. Their names are entry points in
  ``pyproject.toml``.

Exit status: 0 it was done; 1 it was refused, or the answer is bad (no host fits, the operation failed, the audit found
something).
"""
