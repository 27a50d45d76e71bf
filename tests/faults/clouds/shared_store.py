"""What the stores of hosts have of a server, seen in their files, past everything that Causeway believes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.faults.clouds.site import Site


def files(site: Site, uuid: str = "") -> list[Path]:
    """All that the stores have of a server, or of all: disks, owners, snapshots."""
    folders = [_folder(site, store) for store in set(site.stores.values())]
    found = [
        path
        for folder in folders
        for kind in ("disks", "owners", "snapshots")
        for path in folder.glob(f"{kind}/{uuid}*")
    ]
    return sorted(path for path in found if not path.name.startswith("."))


def complaints(site: Site, uuid: str, here: str, *, is_put_aside: bool) -> Iterator[str]:
    """What is wrong with a server's disks there, whose guest is on the host ``here``.

    ``is_put_aside``: the server may be reverted, so its former host can roll the disks back: the same ones, or its own in another
    store.
    """
    kept: list[str] = []
    for store in sorted(set(site.stores.values())):
        folder = _folder(site, store)
        for disk in folder.glob(f"disks/{uuid}*"):
            owner = folder / "owners" / disk.name
            host = owner.read_text().rpartition(" ")[0] if owner.exists() else "nobody"
            snapshots = [path.name for path in folder.glob(f"snapshots/{disk.name}@*")]
            if store == site.stores[here]:
                may_be = host == here
            else:
                may_be = is_put_aside and site.stores.get(host) == store and len(snapshots) == 1
            if not may_be:
                yield f"not its own: {disk.name} in {store} belongs to {host}, its guest is on {here}"
            if len(snapshots) > is_put_aside or not all("@stash-" in each for each in snapshots):
                yield f"snapshots of {disk.name}: {snapshots}"
            kept += snapshots
    root_disks = [path for path in files(site, uuid) if path.parent.name == "disks" and path.name == f"{uuid}_disk"]
    if is_put_aside and root_disks and not any(each.startswith(f"{uuid}_disk@") for each in kept):
        yield f"not kept for a revert: {uuid}_disk"


def _folder(site: Site, store: str) -> Path:
    return site.state.path / "stores" / store
