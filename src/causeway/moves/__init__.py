"""Moves of servers to other hosts, as recipes of `causeway.sagas`.

To see how a server gets from one cell to another, read `recipes`, and then the files of `steps/` in the order of the recipe.

- `requests`: the functions with which the API requests a move.
- `memory`: everything that a move knows; written to the journal with every step.
- `cells_run`: a running operation with a source cell and a target cell; `move_run`: a running move of a guest.
- `roll_back`: restores a server whose move failed; `second_try`: tries the whole move once more.
- `undo_late`: undoes what a conductor did after another one had taken over its move.
- `without_guest/`: evacuations, unshelves, and moves of records.
"""
