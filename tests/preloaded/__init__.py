"""Programs in Python that tests run many times, in processes that share one start: what they import is imported once.

`commands` is what tests use. `server` is the process that imports, and that forks itself for each command.
"""
