"""Folders named ``{move}.{server}``: what a move copies, offers or records of a server's disks.

Every order searches for them, so names are compared as text: compiling a pattern for each would take longer than the search.
"""

from __future__ import annotations

import os
from pathlib import Path


def of_operation(directory: Path, operation_id: str) -> Path | None:
    start = f"{operation_id}."
    return next((directory / name for name in _names(directory) if name.startswith(start)), None)


def of_server(directory: Path, instance_uuid: str) -> list[Path]:
    end = f".{instance_uuid}"
    return [directory / name for name in _names(directory) if name.endswith(end)]


def servers(directory: Path) -> set[str]:
    """The servers of which there are folders."""
    return {name.partition(".")[2] for name in _names(directory) if "." in name and (directory / name).is_dir()}


def _names(directory: Path) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries]
    except FileNotFoundError:
        return []
