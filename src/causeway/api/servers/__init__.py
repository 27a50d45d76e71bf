"""``/servers`` and what belongs to a server. The table of all its routes is `routes.ROUTES`.

- `loading`: finds a server in whichever cell it is, if the caller may see it; checks an action against its row of
  `causeway.model.server_actions`, and records that it begins. `hosts`: whether a compute service is up.
- `listing`, `filters`: lists. `show`, `update`, `delete`.
- `views`: what a server looks like, per microversion. `schemas`: what may be sent.
- `creating/`: POST /servers (`create`), with its devices, networks and schemas (`schemas_create`).
- `actions/`: a module for each group of actions, such as `resize` (also migrate, confirm, revert), `power`, `consoles`.
- `subresources/`: `metadata`, `tags`, `history` (instance actions), `volumes`, `interfaces`, `topology` and others.

A handler reads: policy, object, state, one transaction, cast.
"""
