"""What operations on servers share, moves and others.

- `services`: what a super conductor reaches; `run`: what the steps of every operation see; `journal`: where they are kept.
- `requests`, `acceptance`: how an operation is asked for, and when a request counts.
- `liveness`, `leftovers`: whether a host lives, and what is left on one that is dead.
- `devices`, `attachments`, `port_resources`, `placing`, `groups`: ports, volumes, hosts.
- `history`: what work leaves in a server's history. `by_cell`: threads of which none waits for another cell's.
"""
