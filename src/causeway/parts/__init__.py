"""What operations on servers share, moves and others.

- `services`: what a super conductor reaches; `run`: a running operation, as its steps see it; `journal`: the journal.
- `requests`, `acceptance`: how an operation is requested, and when a request counts.
- `liveness`, `cleanups`: whether a host is up, and what a dead host must clean up when it is back.
- `devices`, `attachments`, `port_resources`, `placing`, `groups`: ports, volumes, hosts.
- `late`: deletes what a slow conductor made after another one had ended its operation.
- `history`: events and faults in a server's history. `by_cell`: threads that do not wait for other cells.
"""
