"""Everything that takes long on a server, except moves: one module and one recipe of sagas for each operation.

How to add an operation:

1. Describe it. `causeway.model.operations` has its name. Its row in `causeway.model.operation_kinds` has its kind of work, the
   actions that request it, the task of its server, and the rest that others ask of it; `causeway.model.exclusion` says what may
   run beside it; `causeway.model.server_actions` says in which states it may be requested.
2. Add a module here with its memory, its steps and its recipe. The memory is a dataclass; fields that the request fills have no
   default, or are `Given`. A step may be repeated after it was interrupted anywhere, so it first looks at what is there.
   `run.memory` has what later steps and the undo need. Each step says which of its fields it `reads` and `writes`, and which
   kinds of things it `makes` outside of the journal. Tests check this, and that every field is written before it is read. A
   recipe that makes things of other services before its pivot has an `undo_late`, for conductors that are too slow.
3. Add a line to `recipes.py`. Then the journal, the leases, takeovers, `causeway operation` and the fault points know it.
4. Add a handler of the API that requests it with `causeway.requests.asking.ask`.
5. Add tests through the API, and an entry in tests/faults/operations/table.py.
"""
