"""Records which live migration sends each guest of this host.

::

    DEPARTURES/SERVER    the id of the migration's operation

A hypervisor knows that a guest is being migrated, but not by which operation. So whoever aborts or forces a migration names the
operation (`of`), and no other one begins meanwhile. The files outlive the process, as migrations do. A file that outlives its
migration does no harm.
"""

from __future__ import annotations

import re
import uuid as uuids
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from oslo_concurrency import lockutils

from causeway import durable, errors

_UUID = re.compile(r"[0-9a-f-]{36}")


class Departures:
    """The live migrations of one host's guests."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        durable.make_folder(directory, mode=0o700)
        durable.sync(directory)

    def begin(self, operation_id: str, instance_uuid: str) -> str | None:
        """Notes that this migration sends the guest from now on; returns the one before, None if it is not known."""
        with self._lock(instance_uuid):
            before = self._known(instance_uuid)
            if before != operation_id:
                durable.write(self._path(instance_uuid), operation_id)
        return before

    @contextmanager
    def of(self, operation_id: str, instance_uuid: str) -> Iterator[bool]:
        """Keeps other migrations of the guest from beginning during the block.

        Yields whether this one is known to be the latest; False if none is known. Raises ClaimRefused if it is another one.
        """
        with self._lock(instance_uuid):
            known = self._known(instance_uuid)
            if known not in (None, operation_id):
                raise errors.ClaimRefused(
                    f"Another live migration of server {instance_uuid} is under way.", details=f"not {operation_id}"
                )
            yield known is not None

    def end(self, operation_id: str, instance_uuid: str) -> None:
        """Discards the note of this migration, unless another one has begun."""
        with self._lock(instance_uuid):
            if self._known(instance_uuid) == operation_id:
                durable.delete(self._path(instance_uuid))

    def discard(self, instance_uuid: str) -> None:
        """Discards the note of the guest, which is destroyed."""
        durable.delete(self._path(instance_uuid))

    def servers(self) -> list[str]:
        """The servers with a note."""
        return sorted(path.name for path in self._directory.iterdir() if _UUID.fullmatch(path.name))

    def _known(self, instance_uuid: str) -> str | None:
        try:
            return durable.read(self._path(instance_uuid), lambda content: str(uuids.UUID(content.decode())))
        except durable.Torn:
            return None

    def _path(self, instance_uuid: str) -> Path:
        return self._directory / instance_uuid

    def _lock(self, instance_uuid: str) -> AbstractContextManager[object]:
        held: AbstractContextManager[object] = lockutils.lock(f"{self._directory}-{instance_uuid}")
        return held
