"""Versions of compute services, and what came with them: for clouds that are upgraded host by host.

| service | RPC | what came |
|---|---|---|
| 1 | 1.0 | builds, power, devices, moves inside a cell |
| 2 | 1.1 | moves between cells; pause, suspend, rebuild, images of servers |
| 3 | 1.2 | hosts show the copy of a server that is kept before the other one is destroyed |

``[upgrade_levels] compute`` holds all to an RPC version until every host is upgraded.
"""

from __future__ import annotations

SERVICE = 3
RPC = "1.2"
# The first ones that can move servers between cells.
CROSS_CELL_SERVICE = 2
CROSS_CELL_RPC = "1.1"
# The first ones that show a copy of a server.
VERIFY_SERVICE = 3
VERIFY_RPC = "1.2"


def allows_cross_cell(level: str | None) -> bool:
    """Whether an upgrade level (an RPC version, ``auto``, or None for no limit) allows moves between cells."""
    if level in (None, "", "auto"):
        return True
    return _numbers(str(level)) >= _numbers(CROSS_CELL_RPC)


def cap(level: str | None) -> str | None:
    """The newest RPC version that may be sent; None: no limit. With ``auto`` each host is asked for what its version has."""
    return level if level not in (None, "", "auto") else None


def _numbers(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor or 0)
