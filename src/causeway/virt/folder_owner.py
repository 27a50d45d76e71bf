"""Which host a folder of disks, or of mounts, belongs to: its name is in the file ``owner`` there.

A host deletes disks in its folder that no server of its own has. If two hosts had one folder, on a file system that both mount,
each would delete the other's, and two on one machine would unmount each other's volumes. So a host that starts writes its name,
and refuses a folder with another name.
"""

from __future__ import annotations

from pathlib import Path

from causeway import durable
from causeway.errors import Misconfigured

OWNER = "owner"


def claim(folder: Path, host: str, otherwise: str = "delete each other's disks") -> None:
    """Makes the folder the host's, which it stays. Of two hosts that ask at once, one gets it.

    ``otherwise``: what hosts would do that shared it.

    Raises `Misconfigured` if it is another host's.
    """
    durable.make_folder(folder)
    path = folder / OWNER
    if durable.create(path, f"{host}\n"):
        return
    found = path.read_bytes().decode(errors="replace").strip()
    if found != host:
        raise Misconfigured(
            f"The folder {folder} belongs to host '{found[:255]}', and this host is '{host}': hosts that shared it would"
            f" {otherwise}. Give this host a folder of its own. If it was called '{found[:255]}' before, and no other"
            f" host uses the folder, write '{host}' into the file {path} and start it again."
        )
