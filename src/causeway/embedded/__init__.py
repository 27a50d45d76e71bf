"""`causeway up`: every role in one process, on embedded parts.

The roles are the same as in a cloud of many processes (`causeway.roles`). Everything around them is embedded: SQLite files,
in-memory message queues, Placement in this process, devcloud for identity, images, networks and volumes, and simulated hosts
or a lab of libvirt hosts.

- `cloud`: assembles, starts and stops everything.
- `settings`: where things are in the state directory; the files that users read and edit.
- `web`: the HTTP server that everything is mounted on.
- `content`: the first content of a new cloud: an image, a network, aggregates, flavors.
- `host_kinds`: the hypervisors, simulated or libvirt.
"""
