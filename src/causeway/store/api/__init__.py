"""Functions over the API database, one file per kind of record."""
