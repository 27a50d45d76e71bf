"""Long work that survives the death of the process that does it. This page is the manual.

A *recipe* is an ordered list of *steps*; a *saga* is one run of a recipe. Each step has a ``do`` and an ``undo``. Both may be
repeated after they were interrupted anywhere, so a step first looks at what is there. The *journal* has what a saga knows (its
*memory*) and what it has done, so any process can continue it. A step that is in doubt is repeated.

**The pivot.** Before a recipe's pivot, a step that failed for a passing reason is retried (`retries`) by the owner of the saga.
A user's cancel takes effect at once. If a step was refused, or its patience is over, the saga is undone: the failed step first,
then the finished ones in reverse order. Then the whole is tried once more if the reason may have passed (`Recipe.try_again`),
or the saga is *rolled back* (`Recipe.rolled_back`). After the pivot a saga only goes forward. A saga that can go neither
forward nor back now is *stuck*: it is tried again later, until it succeeds.

**The lease.** One process owns a saga at a time, and renews its *lease*. Acquiring a saga raises its *epoch*. From then on the
journal refuses writes of the former owner, and everything that gets the epoch can refuse its orders. So a slow process learns
with its next write or call that it lost the saga, and stops. What it did too late is undone when the saga has ended (`late`).

A saga from its memory to its end. ``environment`` has the journal, and who this process is (`environment.Environment`)::

    >>> from dataclasses import dataclass
    >>> from causeway.model.sagas import Saga
    >>> from causeway.sagas.engine import Engine
    >>> from causeway.sagas.recipe import Recipe, Step
    >>> from causeway.sagas.run import Run
    >>> from causeway.sagas.versions import Knowledge

    >>> @dataclass
    ... class CopyMemory:
    ...     source: str
    ...     copy: str | None = None

    >>> class MakeCopy(Step):
    ...     name, reads, writes = "MakeCopy", frozenset({"source"}), frozenset({"copy"})
    ...     def do(self, run):
    ...         run.memory.copy = f"copy of {run.memory.source}"
    ...     def undo(self, run):
    ...         run.memory.copy = None

    >>> class Publish(Step):
    ...     name, reads = "Publish", frozenset({"copy"})
    ...     def do(self, run):
    ...         run.pivot()
    ...         print("published:", run.memory.copy)

    >>> def nothing_is_left(run, cause):
    ...     print("rolled back:", cause.message)

    >>> COPY = Recipe("copy", (MakeCopy(), Publish()), pivot="Publish", rolled_back=nothing_is_left, memory=CopyMemory)
    >>> COPY.unwritten()
    []
    >>> def begin(context, saga, asked_at):
    ...     return Run(environment, context, saga, CopyMemory(**saga.data), asked_at=asked_at)
    >>> engine = Engine(environment, Knowledge({"copy": COPY}), begin)
    >>> request("saga-1", recipe="copy", data={"source": "disk"})
    >>> saga = engine.run(None, "saga-1")
    published: copy of disk
    >>> saga.state.value, saga.data
    ('done', {'source': 'disk', 'copy': 'copy of disk'})

What is where::

    recipe      what a saga consists of: Step, Recipe           keeper    runs requested sagas, renews leases, takes over
    run         what a step sees of its saga                    lease     whether a run can be certain that it owns its saga
    engine      one saga from its first step to its end         lives     who owns: a host, and one life of a process on it
    progress    where a run is in its recipe                    versions  which sagas this release can run
    retries     whether a failed step is retried, and when      late      undoes what a process did after it had lost a saga
    journal     the interface of the journal                    observer  the interface for metrics and injected faults
    environment what all of them use                            clock     the time
    memory      which of its fields are known at the start

The rows are in `causeway.model.sagas`. This package knows nothing of servers: of Causeway it imports only these rows, the
errors and the durable writing of files.
"""
