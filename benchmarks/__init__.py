"""How fast the system is, and what each operation costs: ``python -m benchmarks`` (`make bench`).

Everything runs in one process: the embedded cloud with two cells on the simulated driver, SQLite, the in-memory transport,
the real Placement, and devcloud behind real HTTP.

How times are measured
- No client polls. `cloud.MeasuredCloud` has hooks in the system: a request *arrives* when the API's outermost WSGI
  application is called; its result is *visible* when the step returns whose last commit makes the API show it
  (``ShowTarget``, which begins with it, inside a cell ``MoveRecord``: VERIFY_RESIZE; ``FinishConfirm`` and ``FinishRevert``:
  ACTIVE); the operation has *ended* when the conductor has release the move.
- What is no move (`lifecycle`) is measured the same way however it is carried out (`work.Work`): its result is *visible* when
  a transaction has been committed that makes the API show it - an attached volume: when the request is answered -, and it has
  *ended* when no request, no RPC and no saga is in hand any more.
- ``GET`` requests are timed at the client, over a kept-alive connection, headers sent to body read.
- Placement's share is the time inside its WSGI application, the clients around it not counted.
- The first round of everything only warms up: connections, tokens, compiled statements, the scheduler's hosts.

How calls are counted
- SQL statements as sent to our own databases (Placement's and devcloud's are not ours), transactions' begin and commit
  not included. RPCs by the clients that send them. HTTP as it arrives at each service.
- Periodic work is switched off while it is counted, and ports are plugged late enough that every move waits for its event:
  the numbers are exact. What the network service tells of a deleted port arrives when its server is gone.
- Placement's own statements are counted apart. What the peer is said to need has both: like is compared with like (`peer`).

How a start is measured (`starts`)
- Each command's module is loaded in a process of its own: CPU time, resident memory, number of modules.

How work is measured
- User instructions of all threads, where the kernel counts them, and user CPU (`instructions`): from the request until the end
  of all that it caused, on the same quiet cloud, the median of the runs. Everything that is in the process is in them: our
  roles, Placement, devcloud, SQLite, the client that asks.
- Whose it is (`shares`): ours, the client's, Placement's, that of the other services, by the clocks of threads. How much of it
  was collecting garbage is said beside that; a full collection is a large part of whatever it happens in.
- ``--callgrind`` counts instructions inside of valgrind, what it takes to ask it not included (`callgrind`).
- ``--record`` keeps the instructions of this machine's kind of Python in ``benchmarks/recorded.json``; the test of what
  operations cost holds them within 5 % from then on, wherever such a Python runs and they can be counted.
"""

# Before any module here imports oslo.messaging: it chooses the threads by which that waits.
import causeway as _causeway  # noqa: F401
