"""What operations on servers share, moves and others.

- `services`: what a super conductor reaches; `run`: what the steps of every operation see; `journal`: where they are kept.
- `requests`, `acceptance`: how an operation is asked for, and when a request counts.
- `liveness`, `cleanups`: whether a host lives, and what a dead one is to clean up when it is back.
- `devices`, `attachments`, `port_resources`, `placing`, `groups`: ports, volumes, hosts.
- `history`: what work leaves in a server's history. `by_cell`: threads of which none waits for another cell's.
"""
