"""``/servers`` and what belongs to a server. The table of all its routes is `routes.ROUTES`.

- `loading`: finds a server in whichever cell it is, if the caller may see it; checks an action against its row of
  `causeway.model.server_actions`, and records that it begins. `hosts`: whether a compute service is up.
- `listing`, `filters`: lists. `show`, `update`, `delete`. `create` with `create_devices`, `create_networks`.
- `views`: what a server looks like, per microversion. `schemas`, `schemas_create`: what may be sent.
- actions: `resize` (resize, migrate, confirm, revert), `power` (start, stop, reboot), `admin` (lock, reset, console), ...
  Their names are in `routes`.
- `metadata`, `tags`, `history` (instance actions), `volumes`, `interfaces`, `security_groups`, `addresses`.

A handler reads: policy, object, state, one transaction, cast.
"""
