"""Functions over a cell database, one file per kind of record."""
