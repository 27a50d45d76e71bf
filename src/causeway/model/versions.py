"""The versions of the interface of compute services, and what each one added, for clouds that are upgraded host by host.

`COMPUTE` is the only list: each call in `causeway.rpc.compute` declares one of its RPC versions as ``since``. It is in this layer
because options, the scheduler and the API need it too. The versions of other interfaces are beside their clients.

``[upgrade_levels] compute`` holds all to an RPC version until every host is upgraded.
"""

from __future__ import annotations

from typing import NamedTuple


class Version(NamedTuple):
    """A version of the compute service (as hosts report it), the RPC version that it understands, and what it added."""

    service: int
    rpc: str
    brought: str


COMPUTE = (
    Version(1, "1.0", "builds, power, devices, moves inside a cell; the calls of moves between cells"),
    Version(2, "1.1", "moves between cells are allowed; pause, suspend, rebuild, images of servers"),
    Version(3, "1.2", "hosts show the copy of a server that is kept before the other one is destroyed"),
    Version(4, "1.3", "guests are rebuilt and removed once for an operation, however often that is ordered"),
    Version(
        5,
        "1.4",
        "guests are built, volumes connected and ports plugged once for an operation; late orders do not redo what was undone",
    ),
    Version(6, "1.5", "disks are copied while their guest runs, before it moves; live migrations"),
    Version(7, "1.6", "guests are saved, and woken at another host"),
    Version(
        8,
        "1.7",
        "hosts say whether their hypervisors reach one another; what is left when a guest is off goes directly between cells",
    ),
    Version(9, "1.8", "suspended guests go to another host, and stay suspended"),
    Version(10, "1.9", "diagnostics, crash dumps, passwords of guests"),
    Version(11, "1.10", "servers are rescued"),
    Version(12, "1.11", "consoles of guests"),
    Version(13, "1.12", "UEFI and TPMs; what they keep goes with the guest"),
    Version(14, "1.13", "ports that need a PCI device are attached"),
    Version(
        15, "1.14", "volumes are swapped, block storage is assisted with snapshots, images are cached ahead of time"
    ),
)
SERVICE, RPC = COMPUTE[-1].service, COMPUTE[-1].rpc


def since(rpc: str) -> Version:
    """The version that added an RPC version. Raises KeyError if there is none."""
    return {version.rpc: version for version in COMPUTE}[rpc]


# Versions that code checks for in a host's service or an upgrade level.
CROSS_CELL = since("1.1")
VERIFY = since("1.2")
RESCUE = since("1.10")
FIRMWARE = since("1.12")
VOLUME_JOBS = since("1.14")
# The field's releases, as operators write them in upgrade_levels: those that can't move servers between cells, and those that
# can. None of them has our versions, so the latter mean no limit.
_BEFORE = "pike queens rocky stein train"
_SINCE = (
    "ussuri victoria wallaby xena yoga zed antelope bobcat caracal dalmatian epoxy flamingo"
    " 2023.1 2023.2 2024.1 2024.2 2025.1 2025.2 2026.1"
)
RELEASES = dict.fromkeys(_BEFORE.split(), "1.0") | dict.fromkeys(_SINCE.split(), RPC)


def allows(level: str | None, version: Version) -> bool:
    """Whether an upgrade level (an RPC version, ``auto``, or None for no limit) allows what a version added."""
    held = cap(level)
    return held is None or numbers(held) >= numbers(version.rpc)


def cap(level: str | None) -> str | None:
    """The newest RPC version that may be sent; None for no limit. With ``auto``, each host's own version decides."""
    if level is None or level in ("", "auto"):
        return None
    return RELEASES.get(level, level)


def numbers(version: str) -> tuple[int, int]:
    """An RPC version as numbers, to compare: 1.10 is newer than 1.9."""
    major, _, minor = version.partition(".")
    return int(major), int(minor or 0)
