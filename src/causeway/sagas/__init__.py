"""Sagas: long work that continues even if the process that does it dies. This page is the manual.

A *recipe* is an ordered list of *steps*; a *saga* is one run of a recipe. Each step has a ``do`` and an ``undo``. Each of them
may be interrupted anywhere and repeated, so a step first looks at what is there. The *journal* has everything that a saga knows
(its *memory*) and has done, so any process can continue the saga. A step that is in doubt is repeated.

**The pivot.** If a step before the recipe's pivot fails for a reason that may pass, the owner of the saga retries it (`retries`).
A user's cancel takes effect at once. If a step is refused, or was retried for too long, the owner undoes the saga: first the
failed step, then the finished ones in reverse order. After that, the whole is tried once more if the reason may have passed
(`Recipe.try_again`); otherwise the saga is *rolled back* (`Recipe.rolled_back`). After the pivot a saga only goes forward. A saga
that can go neither forward nor back now is *stuck*: its steps are tried again later, until they succeed.

**The lease.** At any time one process owns a saga. It renews its *lease* on the saga. When another process acquires the saga, the
saga's *epoch* rises. From then on the journal refuses writes of the former owner, and every service that knows the epoch can
refuse its orders. So a slow process learns with its next write or call that it lost the saga, and stops. When the saga has ended,
that process undoes what it did too late (`late`).

An example of a saga, from its memory to its end. ``environment`` has the journal and the identity of this process
(`environment.Environment`)::

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

The modules::

    recipe      Step and Recipe, which a saga consists of       keeper    runs requested sagas, renews leases, takes over
    run         a running saga, as its steps see it             lease     whether a run can be certain that it owns its saga
    engine      one saga from its first step to its end         lives     owners: a host, and one life of a process on it
    progress    the place of a run in its recipe                versions  the sagas that this release can run
    retries     whether a failed step is retried, and when      late      undoes what a process did after it had lost a saga
    journal     the interface of the journal                    observer  the interface for metrics and injected faults
    environment the parts that all of these use                 clock     the time
    memory      the fields of a memory that are known at the start

The rows are in `causeway.model.sagas`. This package knows nothing about servers: from the rest of Causeway it imports only these
rows, the errors and the durable writing of files.
"""
