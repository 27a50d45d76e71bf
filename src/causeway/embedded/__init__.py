"""`causeway up`: every role in one process, on embedded parts.

The roles are the same as in a cloud of many processes (`causeway.roles`); what is embedded is what is around them: SQLite
files, in-memory message queues, Placement in this process, devcloud for identity, images, networks and volumes, and
simulated hosts or a lab of libvirt hosts.

- `cloud`: puts it together, starts and stops it.
- `settings`: where things are in the state directory; the files that users read and edit.
- `web`: the one HTTP server that everything is mounted on.
- `content`: what a new cloud starts with: an image, a network, aggregates, flavors.
- `host_kinds`: the hypervisors, simulated or libvirt.
"""
