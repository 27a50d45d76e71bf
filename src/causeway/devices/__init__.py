"""Ports and volumes of servers.

- `making`, `releasing`: makes and deletes them. `device_records`: reserves and records them.
- `attachments`: volumes of servers that leave a host. `half_reserved`: volumes that nobody has, after a fault.
- `port_devices`, `port_resources`: what ports ask for at a host.
- `late`: deletes what a slow conductor made after another one had ended its operation.
"""
