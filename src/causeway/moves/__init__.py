"""The heart: moves of servers, as recipes of `causeway.sagas`.

To read how a server gets from one cell to another, begin with `recipes`, then the files of `steps/` in its order.

- `requests`: what the API calls to ask for a move.
- `memory`: what a move remembers; it is in the journal, with every step.
- `run`: a move while a conductor works on it; what steps see.
- `roll_back`: what becomes of a server whose move failed; `second_try`: the whole once more.
- `undo_late`: what a conductor did after it had lost a move.
"""
