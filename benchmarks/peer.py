"""What OpenStack Nova needs for the same.

Source: measured on the same kind of machine (2 cores) in the peer's own in-process functional test harness, with SQLite, the
fake driver, the real Placement and fixtures for the services around. Times in milliseconds, (low, high).
"""

SOURCE = "measured on the same kind of machine in the peer's own in-process harness"

MILLISECONDS: dict[str, tuple[float, float]] = {
    "resize": (520, 610),
    "confirm": (170, 220),
    "revert": (270, 370),
    "show": (21, 28),
    "detail": (570, 700),
    "resize x20": (12_400, 12_400),
}

# Calls of one cross-cell resize.
CALLS: dict[str, int] = {"sql": 417, "rpc": 6, "placement": 11, "http": 29}
