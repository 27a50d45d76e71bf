"""Bugs that Nova had in moves, one by one: none is here (docs/known-bugs.md)."""
