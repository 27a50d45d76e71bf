"""Versions of compute services, and what came with them: for clouds that are upgraded host by host.

| service | RPC | what came |
|---|---|---|
| 1 | 1.0 | builds, power, devices, moves inside a cell |
| 2 | 1.1 | moves between cells; pause, suspend, rebuild, images of servers |
| 3 | 1.2 | hosts show the copy of a server that is kept before the other one is destroyed |
| 4 | 1.3 | guests are rebuilt and removed once for an operation, however often that is ordered |
| 5 | 1.4 | so are guests built, volumes connected and ports plugged; what was undone is not done by an order that comes late |
| 6 | 1.5 | disks are copied while their guest runs, before it moves; live migrations |
| 7 | 1.6 | guests are saved, and woken at another host |
| 8 | 1.7 | hosts say whether their hypervisors reach one another; what is left when a guest is off goes directly between cells |
| 9 | 1.8 | suspended guests go to another host, and stay suspended |
| 10 | 1.9 | diagnostics, crash dumps, passwords of guests |
| 11 | 1.10 | servers are rescued |
| 12 | 1.11 | consoles of guests |
| 13 | 1.12 | UEFI and TPMs; what they keep goes with the guest |
| 14 | 1.13 | ports that need a PCI device are attached |
| 15 | 1.14 | volumes are swapped, block storage is assisted with snapshots, images are cached ahead of time |

``[upgrade_levels] compute`` holds all to an RPC version until every host is upgraded.
"""

from __future__ import annotations

SERVICE = 15
RPC = "1.14"
# The first ones that can move servers between cells.
CROSS_CELL_SERVICE = 2
CROSS_CELL_RPC = "1.1"
# The first ones that show a copy of a server.
VERIFY_SERVICE = 3
VERIFY_RPC = "1.2"
# The first one that carries out an order once for an operation that is no move.
ORDERS_RPC = "1.3"
# The first one that does so for builds, attaches and detaches too.
ALL_ORDERS_RPC = "1.4"
# The first one that copies disks while their guest runs.
WARM_RPC = "1.5"
# The first one that takes part in live migrations.
LIVE_RPC = "1.5"
# The first one that saves the memory of guests and wakes them.
SAVED_MEMORY_RPC = "1.6"
# The first one that tries whether its hypervisor reaches another host's.
LIVE_REACH_RPC = "1.7"
# The first one that sends as images what its target can't fetch.
SEND_OFFERED_RPC = "1.7"
# The first one that takes the memory of suspended guests along.
SUSPENDED_RPC = "1.8"
# The first one that asks something of the guest itself.
INSIDE_GUESTS_RPC = "1.9"
# The first ones that rescue servers.
RESCUE_SERVICE = 11
RESCUE_RPC = "1.10"
# The first one that says where the consoles of its guests are.
CONSOLES_RPC = "1.11"
# The first one whose guests have UEFI and TPMs, and that hands over what these keep.
FIRMWARE_SERVICE = 13
# The first one that claims the device of a port which is attached.
PORT_DEVICES_RPC = "1.13"
# The first ones that swap volumes.
VOLUME_JOBS_SERVICE = 15
VOLUME_JOBS_RPC = "1.14"
# The field's releases, as operators write them in upgrade_levels: those that could not move servers between cells, and those that
# can. None of them had our versions, so the latter are no limit.
_BEFORE = "pike queens rocky stein train"
_SINCE = (
    "ussuri victoria wallaby xena yoga zed antelope bobcat caracal dalmatian epoxy flamingo"
    " 2023.1 2023.2 2024.1 2024.2 2025.1 2025.2 2026.1"
)
RELEASES = dict.fromkeys(_BEFORE.split(), "1.0") | dict.fromkeys(_SINCE.split(), RPC)


def allows_cross_cell(level: str | None) -> bool:
    """Whether an upgrade level (an RPC version, ``auto``, or None for no limit) allows moves between cells."""
    return _allows(level, CROSS_CELL_RPC)


def allows_rescue(level: str | None) -> bool:
    """The same of rescues."""
    return _allows(level, RESCUE_RPC)


def allows_volume_jobs(level: str | None) -> bool:
    """The same of swaps and assisted snapshots of volumes."""
    return _allows(level, VOLUME_JOBS_RPC)


def _allows(level: str | None, version: str) -> bool:
    held = cap(level)
    return held is None or _numbers(held) >= _numbers(version)


def cap(level: str | None) -> str | None:
    """The newest RPC version that may be sent; None: no limit. With ``auto`` each host is asked for what its version has."""
    if level is None or level in ("", "auto"):
        return None
    return RELEASES.get(level, level)


def _numbers(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor or 0)
