"""What a host does: guests, disks, ports and volumes of one compute host.

A compute has no database. It acts when a conductor calls it (`rpc.compute`), and returns what the conductor should record. It
also reports to its cell's conductor by itself (`upkeep.report`). Every call may be repeated after a crash.

- `service`: assembles, starts and stops a compute. It lists the RPC endpoints.
- `upkeep`: reports, the inventory for the audit, claims that no guest ends, orders missed while the host was down.
- `handover`: moves of a guest to another host, inside a cell and between cells, and the data path of its disks.
- `guests`: the guest of one server here: build, rebuild, power, devices, images; orders of operations.
- `host`: the `Host` that all of these share: driver, clients of services, locks; its claims, and whose orders it follows.
- `disks`: base images, and disks that are offered to other hosts.

A package imports only from those below it. A new operation on a guest that stays on its host belongs to `guests`; one that
needs two hosts, to `handover`.
"""
