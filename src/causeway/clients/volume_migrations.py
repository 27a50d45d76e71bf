"""Reports to the block storage service about volumes that it moves, or makes snapshots of, while guests use them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import requests

from causeway import errors
from causeway.clients.rights import SERVICE
from causeway.context import RequestContext


class VolumeMigrations(ABC):
    """A part of `causeway.clients.volume.VolumeClient`."""

    @abstractmethod
    def _call(
        self, context: RequestContext | None, method: str, route: str, what: str, **more: Any
    ) -> requests.Response: ...

    @abstractmethod
    def migration_status(self, context: RequestContext, volume_id: str) -> str | None:
        """The volume's migration status, read with our own credentials. Raises VolumeNotFound."""

    def complete_migration(self, context: RequestContext, old_id: str, new_id: str, *, failed: bool) -> str:
        """Reports that a server uses the volume's copy now, or (``failed``) that it does not. Returns the volume's id from now
        on.

        The service deletes the unused one of the two. Does nothing if this was completed before. Raises ServiceRefused.
        """
        if self._is_over(context, old_id, new_id):
            return old_id
        answer = self._call(
            context,
            "POST",
            "/v3/volumes/{volume_id}/action",
            f"complete the migration of volume {old_id} to {new_id}",
            body={"os-migrate_volume_completion": {"new_volume": new_id, "error": failed}},
            called_as=SERVICE,
            accept=(),
            volume_id=old_id,
        )
        kept: str = answer.json()["save_volume_id"]
        return kept

    def report_snapshot(self, context: RequestContext, snapshot_id: str, status: str, progress: str | None) -> None:
        """Reports the outcome of a snapshot that the service requested. Raises ServiceRefused, NotFound."""
        wanted = {"status": status} | ({"progress": progress} if progress is not None else {})
        self._call(
            context,
            "POST",
            "/v3/snapshots/{snapshot_id}/action",
            f"update the status of snapshot {snapshot_id}",
            body={"os-update_snapshot_status": wanted},
            called_as=SERVICE,
            accept=(),
            missing=errors.NotFound(f"Snapshot {snapshot_id} could not be found."),
            repeatable=True,
            snapshot_id=snapshot_id,
        )

    def _is_over(self, context: RequestContext, old_id: str, new_id: str) -> bool:
        """Whether an earlier attempt, whose answer was lost, took effect. Only a volume that is being moved has a target."""
        try:
            return self.migration_status(context, new_id) != f"target:{old_id}"
        except errors.VolumeNotFound:
            return True
