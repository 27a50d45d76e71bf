"""Moves of servers, as recipes of `causeway.sagas`.

To read how a server gets from one cell to another, begin with `recipes`, then the files of `steps/` in its order.

- `requests`: what the API calls to request a move.
- `memory`: what a move remembers; the journal has it with every step.
- `run`: a running move, as its steps see it.
- `roll_back`: restores a server whose move failed; `second_try`: tries the whole move once more.
- `undo_late`: undoes what a conductor did after it had lost a move.
"""
