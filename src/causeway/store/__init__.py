"""The databases: the API database (one per cloud) and a cell database for each cell.

- `database`: an engine with short, explicit transactions: `read()` and `write()`.
- `api_tables`, `cell_tables`: the schemas (typed declarative), one metadata each; `schema` creates and upgrades them.
- `api/`, `cell/`: functions over a `Database`, one file per kind of record. They take and return the dataclasses of `model`.
- `cells`: finds the database of a cell, and asks all of them at once.

The authority on where a server lives is its instance mapping in the API database. Migrations and the journal of moves
are in the API database too: a move has one record, however many cells hold a copy of its server.
"""
