"""Runs what proves the project, in parts, and reports what came of them: ``make verify``, ``make integration``.

- `parts`: the table of all parts: what each proves, its command, about how long it takes.
- `running`: runs a part as a process; what it prints goes to a file.
- `reading`: counts and figures, from the file in which the part's program wrote them.
- `outcomes`: what came of a part, kept in a file, so that a run that was interrupted continues where it stopped.
- `report`, `page`: a table and docs/verified.md; a page with pictures.

A part that passed is not run again as long as no file of the project changes.
"""
