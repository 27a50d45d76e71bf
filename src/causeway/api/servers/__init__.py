"""``/servers`` and what belongs to a server. The table of all its routes is `routes.ROUTES`.

- `loading`: finds a server, whoever may see it, wherever it is; checks an action's row of
  `causeway.model.server_actions`, and records that it begins. `hosts`: is a compute service up.
- `listing`, `filters`: lists. `show`, `update`, `delete`. `create` with `create_devices`, `create_networks`.
- `views`: what a server looks like, per microversion. `schemas`, `schemas_create`: what may be sent.
- actions: `resize` (resize, migrate, confirm, revert), `power` (start, stop, reboot), `admin` (lock, reset, console),
  `unavailable` (those that other clouds have). Their names are in `routes`.
- `metadata`, `tags`, `history` (instance actions), `volumes`, `interfaces`, `security_groups`, `addresses`.

A handler reads: policy, object, state, one transaction, cast.
"""
