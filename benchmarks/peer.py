"""What OpenStack Nova needs for the same.

Source: measured on the same kind of machine (2 cores) in the peer's own in-process functional test harness, with SQLite, the
fake driver, the real Placement and fixtures for the services around. Times in milliseconds, (low, high).
"""

SOURCE = "measured on the same kind of machine in the peer's own in-process harness"

MILLISECONDS: dict[str, tuple[float, float]] = {
    "resize": (520, 610),
    "confirm": (170, 220),
    "revert": (270, 370),
    "same-cell": (519, 606),
    "show": (21, 28),
    "detail": (570, 700),
    "resize x20": (12_400, 12_400),
}

# Millions of user instructions of the whole process, harness included: as we count them ourselves (`benchmarks.instructions`).
MILLION_INSTRUCTIONS: dict[str, float] = {
    "resize": 1785,
    "confirm": 418,
    "revert": 907,
    "same-cell": 1455,
    "create": 1078,
    "show": 74,
}

# Calls of one cross-cell resize. Statements are those that both count: without BEGIN, COMMIT and SAVEPOINT, which the harness
# lists as statements too (320 to 328 of the peer's own, 417 with Placement's). Placement runs in the process there as here.
CALLS: dict[str, tuple[int, int]] = {
    "sql": (213, 213),
    "sql_with_placement": (277, 277),
    "rpc": (6, 6),
    "placement": (11, 11),
    "http": (29, 29),
}
