"""The steps of moves, one file per family."""
