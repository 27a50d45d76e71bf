"""Everything that takes long on a server, but moves: one module and one recipe of sagas for each operation.

How to add an operation:

1. `causeway.model.operations`: its name, the task that its server has meanwhile, and what work it is; `causeway.model.exclusion`:
   what may be done beside it; `causeway.model.server_actions`: in which states it may be asked for.
2. A module here: what it remembers (a dataclass; what the request fills has no default, or is `Given`), its steps, its recipe. A
   step looks first at what is there, because it may be repeated after it was interrupted anywhere. `run.memory` has what later
   steps and the undo need. Each step says which fields of it it `reads` and `writes`, and which kinds of things it `makes`
   outside of the journal. Tests check that this is true, and that no step reads what no step before has written.
3. `recipes.py`: a line. From then on the journal, the leases, takeovers, `causeway operation` and the fault points know it.
4. A handler of the API that asks for it with `requests.ask`.
5. Tests: through the API, and a flow in tests/faults/operations.
"""
