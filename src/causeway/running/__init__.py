"""What works on operations has: services, a run as its steps see it, and patience.

- `services`: what a super conductor reaches. `by_cell`: threads that do not wait for other cells.
- `server_run`: a running operation on a server, as its steps see it. `patience`: for how long its steps are retried.
- `followers`: the operation that follows another one.
"""
