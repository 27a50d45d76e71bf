"""Files beside the folders of guests, which only work that is under way needs.

::

    INSTANCES/rounds-UUID.json       rounds (`rounds`), with scratch-UUID-NAME
    INSTANCES/snapshots-UUID.json    rounds of disks in Ceph (`snapshot_rounds`)
    INSTANCES/export-UUID-*          copies of disks that are sent (`disks`)
    INSTANCES/switch-UUID.json       a guest is switched to another volume (`block_copies`)
    INSTANCES/frozen-UUID            file systems of a guest stand still (`agent`)

The work deletes them itself. Those of a process that was killed are found here, and deleted if nobody continues the work.
"""

from __future__ import annotations

import re

from causeway import durable
from causeway.virt.libvirt.storage.block_copies import switch_file
from causeway.virt.libvirt.storage.folders import InstanceFolders
from causeway.virt.libvirt.storage.rounds import Rounds

_UUID = r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_NAMES = {
    "rounds": re.compile(rf"(?:rounds|snapshots)-{_UUID}\.json"),
    "exports": re.compile(rf"export-{_UUID}-.*"),
    "switches": re.compile(rf"switch-{_UUID}\.json"),
    "frozen": re.compile(rf"frozen-{_UUID}"),
}


def listed(disks: InstanceFolders) -> dict[str, list[str]]:
    """As `HostMethods.list_temporary_files`."""
    found: dict[str, set[str]] = {}
    for path in disks.directory.iterdir():
        for kind, name in _NAMES.items():
            if (match := name.fullmatch(path.name)) is not None and not disks.is_exported(path):
                found.setdefault(kind, set()).add(match[1])
    return {kind: sorted(uuids) for kind, uuids in found.items()}


def discard(disks: InstanceFolders, rounds: Rounds, kind: str, uuid: str) -> None:
    if kind == "exports":
        disks.delete_stale_exports(uuid)
    elif kind == "switches":
        durable.delete(switch_file(disks.directory, uuid))
    elif kind == "rounds":
        rounds.discard(uuid)
    elif kind == "frozen":
        rounds.thaw(uuid)
