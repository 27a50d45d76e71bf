"""What a host does: guests, disks, ports and volumes of one compute host. One file per concern.

A compute has no database. It acts when a conductor calls it (`rpc.compute`), and returns what is to be written down; on its
own it reports to its cell's conductor (`report`). Everything may be called again after a crash in its middle.

- `host`: what all concerns share: the driver, the services around, locks, events.
- `build`, `power`, `devices`, `resize` (moves inside a cell), `snapshot_resize` (between cells): RPC endpoints, one concern
  each. `handover` is what both kinds of move do.
- `disk_transfer`: the data path. `disk_offers`, `disk_server`, `disk_fetch`: from host to host.
- `guest`: what a guest is made of; `image_cache`, `config_drive`, `vif_events`: parts of that.
- `service`: puts it together, starts and stops it.
"""
