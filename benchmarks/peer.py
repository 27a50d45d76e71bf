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

# Calls of one cross-cell resize. Placement runs in the harness's process: 417 statements were counted altogether, Placement's 97
# among them; the peer's own are 320 to 328. Ours are counted apart from Placement's, so that like is compared with like: our own
# with ``sql``, ours and Placement's together with ``sql_with_placement``.
CALLS: dict[str, tuple[int, int]] = {
    "sql": (320, 328),
    "sql_with_placement": (417, 417),
    "rpc": (6, 6),
    "placement": (11, 11),
    "http": (29, 29),
}
