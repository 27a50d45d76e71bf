"""Who owns the guests of a host that Nova had: files in Causeway's state folder, and Nova's file ``compute_id``.

A nova-compute (since 2023.1) that finds no ``compute_id`` beside its configuration or in its state_path does not start, if its
service is in Nova's database: "No local node identity found, but this is not our first startup on this host." So Causeway holds
that file under another name as long as it owns the host:

==========================================  ======  =====  =========
after                                       Nova's  held   ``taken``
==========================================  ======  =====  =========
nothing, and a complete release             x                            Nova may start; Causeway only looks
the first half of a take or of a release            x                    nobody starts; both can be completed, and undone
a complete take                                     x      x             Causeway owns the host
==========================================  ======  =====  =========

So the marker ``taken`` is the last that a take writes, and the first that a release deletes.
"""

from __future__ import annotations

import logging
import uuid as uuids
from collections.abc import Callable, Sequence
from pathlib import Path

from causeway import durable, errors
from causeway.compute.host.claims import CLAIMS
from causeway.faults import injector
from causeway.model.found_host import FoundIdentity

LOG = logging.getLogger(__name__)

IDENTITY, HELD = "compute_id", "compute_id.held-by-causeway"
MARKER = "taken"
# As many as Nova reads.
_CHARACTERS = 40


class Ownership:
    """``folders``: where Nova looks for its identity."""

    def __init__(self, state_dir: Path, folders: Sequence[Path]) -> None:
        self._own = state_dir / IDENTITY
        self._marker = state_dir / MARKER
        self._claims = state_dir / CLAIMS
        self._folders = list(dict.fromkeys(folders))

    @property
    def is_taken(self) -> bool:
        return self._marker.exists()

    def identities(self) -> list[FoundIdentity]:
        """Nova's files that there are, under either name."""
        found = []
        for folder in self._folders:
            for name in (IDENTITY, HELD):
                path = folder / name
                try:
                    with path.open("rb") as content:
                        found.append(FoundIdentity(str(path), _uuid(content.read(_CHARACTERS)), is_held=name == HELD))
                except FileNotFoundError:
                    continue
                except OSError as failure:
                    LOG.error("%s can't be read: %s", path, failure)
                    found.append(FoundIdentity(str(path), None, is_held=name == HELD))
        return found

    def take(self, node_uuid: str, check: Callable[[], None]) -> None:
        """Makes the host Causeway's. May be repeated.

        ``check`` raises if a nova-compute runs. It is called when none can be started any more: one that was started just before
        has read its identity already. Then Nova's file gets its name again.

        Raises Conflict, and changes nothing, if the host is another node.
        """
        self._check_identity(node_uuid)
        durable.write(self._own, node_uuid)
        self._hold()
        try:
            injector.reach("adopt.take.held")
            check()
        except BaseException:
            if not self.is_taken:
                self._return(self._folders)
            raise
        durable.write(self._marker, f"{node_uuid}\n")

    def release(self) -> None:
        """Makes the host Nova's again. May be repeated. Raises Conflict, and changes nothing, if Nova's files disagree."""
        self.check_releasable()
        # The next take reads anew what servers hold here: Nova may have changed it meanwhile.
        durable.delete_tree(self._claims)
        durable.delete(self._marker)
        injector.reach("adopt.release.unmarked")
        self._return(self._folders)

    def check_releasable(self) -> None:
        """Raises Conflict if Nova's files disagree."""
        found = {identity.uuid for identity in self.identities()}
        if len(found) > 1 or None in found:
            raise errors.Conflict(
                "Nova's files with the identity of this host differ: nothing is changed.", details=self._listed()
            )

    def hold_again(self) -> None:
        """Called when the owner starts: somebody may have written Nova's file anew. Raises Conflict if it is another node's."""
        node_uuid = self._marker.read_text().strip()
        self._check_identity(node_uuid)
        if self._hold():
            LOG.error("Somebody wrote %s anew though this host was taken from Nova: it is put aside again", IDENTITY)

    def _check_identity(self, node_uuid: str) -> None:
        found = self.identities()
        if not found or any(identity.uuid != node_uuid for identity in found):
            raise errors.Conflict(f"This host is not node {node_uuid} in Nova's files.", details=self._listed())
        own = durable.read(self._own, lambda content: str(uuids.UUID(content.decode().strip())))
        if own is not None and own != node_uuid:
            raise errors.Conflict(
                f"This host was a node of Causeway's before, and not {node_uuid}.",
                details=f"{self._own} has {own}: if nothing of that node is left, delete the file",
            )

    def _listed(self) -> str:
        return ", ".join(f"{each.path}: {each.uuid}" for each in self.identities()) or "there is none"

    def _hold(self) -> list[Path]:
        """Renames Nova's files. Returns the folders in which there was one."""
        found = [folder for folder in self._folders if (folder / IDENTITY).exists()]
        for folder in found:
            durable.rename(folder / IDENTITY, folder / HELD)
        return found

    def _return(self, folders: Sequence[Path]) -> None:
        for folder in folders:
            if (folder / HELD).exists():
                durable.rename(folder / HELD, folder / IDENTITY)


def _uuid(content: bytes) -> str | None:
    try:
        return str(uuids.UUID(content.decode().strip()))
    except ValueError:
        return None
