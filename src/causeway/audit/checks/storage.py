"""Storage that hosts share: a disk there belongs to the host where its server is, and what it was is kept for reverts only."""

from __future__ import annotations

from collections.abc import Iterator

from causeway.audit.snapshot import ServerStanding, Snapshot
from causeway.model.audit import Disagreement, Fix, Severity
from causeway.model.shared_disk import ARRIVING, NOBODY, ROUND, StoredDisk

_BY_HAND = "Look at the disk with the storage's own tools (`rbd info`, `rbd status`) before you delete anything."


def orphaned(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Disks of servers that are deleted, or that nobody knows."""
    for name, storage in snapshot.storages.items():
        for uuid, disks in storage.by_server().items():
            standing = snapshot.standing(uuid)
            if standing not in (ServerStanding.DELETED, ServerStanding.UNKNOWN):
                continue
            left = _why_kept(snapshot, name, uuid, standing)
            what = "is deleted" if standing is ServerStanding.DELETED else "nobody knows"
            for disk in disks:
                yield Disagreement(
                    "storage.orphaned",
                    Severity.WARNING,
                    f"disk {disk.name}",
                    uuid,
                    f"{name} has disk {disk.name} of server {uuid}, which {what}.",
                    None if left else Fix("remove_from_storage", {"host": storage.asked, "name": disk.name}),
                    left,
                )


def _why_kept(snapshot: Snapshot, name: str, uuid: str, standing: ServerStanding) -> str:
    """Empty if the disks of a server that is not there are certainly not needed; else the reason to keep them."""
    if standing is not ServerStanding.DELETED:
        return f"This cloud does not know whose it is. {_BY_HAND}"
    for host in snapshot.hosts.values():
        if host.contents is None:
            return f"Host {host.name} may have something of the server, and was not asked."
        if host.contents.storage == name and uuid in {
            *host.contents.guests,
            *host.contents.disks,
            *host.contents.stashed,
        }:
            return f"Host {host.name} has something of the server, and deletes the disk with it."
    return ""


def owners(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Disks that belong to another host than that of their server."""
    for name, storage in snapshot.storages.items():
        for uuid, disks in storage.by_server().items():
            home = snapshot.home(uuid)
            contents = snapshot.contents_of(home.host) if home is not None else None
            if home is None or contents is None or contents.storage != name or not snapshot.is_quiet(home):
                continue
            if snapshot.movement(uuid) is not None or uuid not in contents.disks:
                continue
            for disk in disks:
                if ARRIVING not in disk.name and disk.owning_host != home.host:
                    yield Disagreement(
                        "storage.owner",
                        Severity.CRITICAL,
                        f"disk {disk.name}",
                        uuid,
                        f"The server is on {home.host}, and its disk {disk.name} in {name} belongs to {_whose(disk)}.",
                        left=f"Two guests may write to it: stop the server. {_BY_HAND}",
                    )


def arriving(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Copies that no move completes any more. Nobody has written an owner there."""
    for name, uuid, disk in _at_rest(snapshot, "copies"):
        if ARRIVING in disk.name:
            yield Disagreement(
                "storage.arriving",
                Severity.WARNING,
                f"disk {disk.name}",
                uuid,
                f"{name} has disk {disk.name}, a copy for a move of the server that has ended.",
                Fix("remove_from_storage", {"host": snapshot.storages[name].asked, "name": disk.name}),
            )


def rounds(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Snapshots from which nobody copies any more."""
    for name, uuid, disk in _at_rest(snapshot, "rounds"):
        for label in (each for each in disk.snapshots if each.startswith(ROUND)):
            yield Disagreement(
                "storage.round",
                Severity.WARNING,
                f"snapshot {disk.name}@{label}",
                uuid,
                f"{name} keeps what disk {disk.name} was when it was copied, and no move of the server copies it.",
                left=f"The next move of the server deletes the snapshot, and so does its deletion. {_BY_HAND}",
            )


def _at_rest(snapshot: Snapshot, kind: str) -> Iterator[tuple[str, str, StoredDisk]]:
    """(storage, server, disk) of servers at home on which nothing works, and of which no host has files of this kind."""
    for name, storage in snapshot.storages.items():
        for uuid, disks in storage.by_server().items():
            if _is_settled(snapshot, uuid) and not _has_file(snapshot, f"{kind}.part-of-{uuid}"):
                yield from ((name, uuid, disk) for disk in disks)


def _is_settled(snapshot: Snapshot, uuid: str) -> bool:
    """Whether a server is at home, and nothing works on it."""
    home = snapshot.home(uuid)
    return home is not None and snapshot.is_quiet(home) and snapshot.movement(uuid) is None


def _has_file(snapshot: Snapshot, name: str) -> bool:
    """Whether a host has such a file of a server, or may have one."""
    return any(
        host.contents is None or any(file.name == name for file in host.contents.leftover_files)
        for host in snapshot.hosts.values()
    )


def put_aside(snapshot: Snapshot) -> Iterator[Disagreement]:
    """Snapshots for a revert that nobody can ask for any more."""
    for name, storage in snapshot.storages.items():
        for uuid, disks in storage.by_server().items():
            home = snapshot.home(uuid)
            if home is None or not snapshot.is_quiet(home) or snapshot.movement(uuid) is not None:
                continue
            if any(host.contents is None or uuid in host.contents.stashed for host in snapshot.hosts.values()):
                # The host that has put it aside deletes the snapshot with what it has stashed.
                continue
            for disk in disks:
                for label in (each for each in disk.snapshots if each.startswith("stash-")):
                    yield Disagreement(
                        "storage.put_aside",
                        Severity.WARNING,
                        f"snapshot {disk.name}@{label}",
                        uuid,
                        f"{name} keeps what disk {disk.name} was before a move, and no move of the server can be reverted.",
                        left=f"Delete the snapshot. {_BY_HAND}",
                    )


def _whose(disk: StoredDisk) -> str:
    return {None: "nobody: it was never finished", NOBODY: "nobody"}.get(disk.owning_host, str(disk.owning_host))
