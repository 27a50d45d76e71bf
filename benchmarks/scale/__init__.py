"""``make bench-scale``: a cloud of many cells and hosts, every role in a process of its own, on PostgreSQL and RabbitMQ.

What is real: API (gunicorn), super conductors, scheduler, a conductor for each cell, Placement (in processes of its own, on
PostgreSQL), the databases, RabbitMQ, keystonemiddleware in front of the API. Identity, image and network are devcloud's.

What is not:

- *Most hosts are records*, and those that are not are simulated, and not processes: `benchmarks.scale.hosts` runs the compute
  service of many in one, with one connection to a cell's RabbitMQ for all hosts of the cell. They report every
  `REPORT_INTERVAL` seconds, evenly spread; operators' 10 seconds would be 1,000 reports a second, on one machine.
- *Most servers are records*: `benchmarks.scale.seed` writes them (mapping, request spec, instance, disk, action) and what they
  hold in Placement; they have no guest. Those that move are built over the API.
- PostgreSQL does not sync to the medium (as in the tests).

A size is measured after the other, from a cloud of one cell to the one that was asked for; the table shows both, and the
ratios. Times depend on the machine and on who else uses it; counts and ratios hardly do.
"""
