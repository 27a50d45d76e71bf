"""The heart: moves as journaled sagas.

A *recipe* is an ordered list of steps (`recipes`); a *step* has a ``do`` and an ``undo``, both idempotent (`steps/`). The
*engine* runs a recipe: the intent of each step is in the journal before it acts, its outcome after (`engine`,
`store.api.journal`). The *pivot* of a recipe divides it: before it a failure undoes everything and gives the server back,
after it the move only goes forward.

To read how a server gets from one cell to another, begin with `recipes`, then the files of `steps/` in its order.

- `requests`: what the API calls to ask for a move; writes it to the journal and tells a conductor.
- `memory`: what a move remembers; it is in the journal, with every step.
- `run`: a move in the hands of a conductor; what steps see.
- `give_back`: how a server is given back when a move failed.
"""
