"""The machine type with which a server's guest was first started. The server keeps it on every host, whatever the host's default.

It is in the server's system metadata, under Nova's name.
"""

from __future__ import annotations

from collections.abc import Mapping

RECORDED = "image_hw_machine_type"


def recorded(system_metadata: Mapping[str, str]) -> str | None:
    return system_metadata.get(RECORDED) or None


def recording(system_metadata: Mapping[str, str], machine_type: str | None) -> dict[str, str]:
    """System metadata with the machine type that a host reported, unless one is recorded already."""
    if machine_type is None or recorded(system_metadata) is not None:
        return dict(system_metadata)
    return {**system_metadata, RECORDED: machine_type}


def without(system_metadata: Mapping[str, str]) -> dict[str, str]:
    """System metadata without a machine type, for a server that is made anew from another image."""
    return {name: value for name, value in system_metadata.items() if name != RECORDED}
