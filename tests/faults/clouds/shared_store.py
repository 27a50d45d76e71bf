"""What the store of all hosts has of a server, seen in its files, past everything that Causeway believes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.faults.clouds.site import Site

STORE = "pool"


def files(site: Site, uuid: str = "") -> list[Path]:
    """All that the store has of a server, or of all: disks, owners, snapshots."""
    folder = site.state.path / "stores" / STORE
    found = [*folder.glob(f"disks/{uuid}*"), *folder.glob(f"owners/{uuid}*"), *folder.glob(f"snapshots/{uuid}*")]
    return sorted(path for path in found if not path.name.startswith("."))


def complaints(site: Site, uuid: str, here: str, *, is_put_aside: bool) -> Iterator[str]:
    """What is wrong with a server's disks there, whose guest is on the host ``here``.

    ``is_put_aside``: the server may be reverted, so its former host can roll the disks back.
    """
    if not site.shares_storage:
        return
    folder = site.state.path / "stores" / STORE
    for disk in folder.glob(f"disks/{uuid}*"):
        owner = folder / "owners" / disk.name
        text = owner.read_text() if owner.exists() else "nobody"
        if text.rpartition(" ")[0] != here:
            yield f"not its own: {disk.name} belongs to {text}, its guest is on {here}"
        snapshots = [path.name for path in folder.glob(f"snapshots/{disk.name}@*")]
        if len(snapshots) > is_put_aside or (is_put_aside and disk.name.endswith("_disk") and not snapshots):
            yield f"snapshots of {disk.name}: {snapshots}"
