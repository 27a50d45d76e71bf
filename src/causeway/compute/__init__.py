"""What a host does: guests, disks, ports and volumes of one compute host.

A compute has no database. It acts when a conductor calls it (`rpc.compute`), and returns what is to be written down; on its
own it reports to its cell's conductor (`upkeep.report`). Everything may be called again after a crash in its middle.

- `service`: puts it together, starts and stops it. Endpoints of RPC are listed there.
- `upkeep`: reports, inventory for the audit, claims that no guest ends, orders missed while the host was down.
- `handover`: a guest goes to another host: moves inside a cell and between cells, the data path of its disks.
- `guests`: the guest of one server here: build, rebuild, power, devices, images; orders of operations.
- `host`: the `Host` that all of these get: the driver, the services around, locks; its claims, and whose orders it follows.
- `disks`: base images, disks that are offered to other hosts.

Nothing imports from above. A new operation on a guest that stays where it is goes to `guests`; what needs two hosts, to
`handover`.
"""
