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
    Version(15, "1.14", "all that release 0.1.0 had, the first release"),
    Version(16, "1.15", "moves whose target is their source have the calls of all other moves"),
    Version(17, "1.16", "trims of guests"),
    Version(18, "1.17", "ports with devices of hosts in live and near-live migrations"),
    Version(19, "1.18", "disks in storage that several hosts share"),
    Version(20, "1.19", "limits of what guests write while their disks are copied"),
)
SERVICE, RPC = COMPUTE[-1].service, COMPUTE[-1].rpc


# Nova's releases, as operators write them in upgrade_levels. None of them has our versions, so they mean no limit.
RELEASES = (
    *("pike", "queens", "rocky", "stein", "train", "ussuri", "victoria", "wallaby", "xena", "yoga", "zed", "antelope"),
    *("bobcat", "caracal", "dalmatian", "epoxy", "flamingo"),
    *("2023.1", "2023.2", "2024.1", "2024.2", "2025.1", "2025.2", "2026.1"),
)


def cap(level: str | None) -> str | None:
    """The newest RPC version that may be sent; None for no limit. With ``auto``, each host's own version decides."""
    return None if level is None or level in ("", "auto") or level in RELEASES else level


def numbers(version: str) -> tuple[int, int]:
    """An RPC version as numbers, to compare: 1.10 is newer than 1.9."""
    major, _, minor = version.partition(".")
    return int(major), int(minor or 0)
