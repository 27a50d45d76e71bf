"""Snapshots of volumes, which images of servers on volumes are made of."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import requests

from causeway import errors
from causeway.context import RequestContext


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of a volume. ``size`` in GiB."""

    id: str
    volume_id: str
    size: int
    status: str = "available"


class _HasStatus(Protocol):
    @property
    def status(self) -> str: ...


S = TypeVar("S", bound=_HasStatus)


class VolumeSnapshots(ABC):
    """A part of `causeway.clients.volume.VolumeClient`."""

    @abstractmethod
    def _call(self, context: RequestContext, method: str, route: str, what: str, **more: Any) -> requests.Response: ...

    @abstractmethod
    def _settled(self, look: Callable[[], S], what: str, timeout: float, stop: threading.Event | None = None) -> S: ...

    def create_snapshot(self, context: RequestContext, volume_id: str, *, name: str = "", description: str = "") -> str:
        """Requests a snapshot of a volume, in use or not, which belongs to the user. Returns its id. It is not ready yet."""
        wanted = {"volume_id": volume_id, "name": name, "description": description, "force": True}
        answer = self._call(
            context,
            "POST",
            "/v3/snapshots",
            f"make a snapshot of volume {volume_id}",
            body={"snapshot": wanted},
            only_as_user=True,
            missing=volume_missing(volume_id),
        )
        snapshot_id: str = answer.json()["snapshot"]["id"]
        return snapshot_id

    def show_snapshot(self, context: RequestContext, snapshot_id: str) -> Snapshot:
        """Raises NotFound."""
        answer = self._call(
            context,
            "GET",
            "/v3/snapshots/{snapshot_id}",
            f"show snapshot {snapshot_id}",
            snapshot_id=snapshot_id,
            missing=errors.NotFound(f"Snapshot {snapshot_id} could not be found."),
        )
        return _snapshot(answer.json()["snapshot"])

    def wait_for_snapshot(self, context: RequestContext, snapshot_id: str, *, timeout: float = 180.0) -> None:
        """Waits until the snapshot is available. Raises InvalidVolume if it fails, ServiceFailed after ``timeout`` seconds."""
        snapshot = self._settled(lambda: self.show_snapshot(context, snapshot_id), f"Snapshot {snapshot_id}", timeout)
        if snapshot.status != "available":
            raise errors.InvalidVolume(
                f"Snapshot {snapshot_id} of volume {snapshot.volume_id} did not become available: it is {snapshot.status}."
            )

    def snapshots_named(self, context: RequestContext, name: str, description: str) -> list[Snapshot]:
        """The snapshots with this name and description in all projects, read with our own credentials."""
        query = {"all_tenants": "1", "name": name}
        what = f"list the snapshots named {name!r}"
        answer = self._call(context, "GET", "/v3/snapshots/detail", what, query=query, as_service=True)
        # A service may be configured to ignore filters.
        return [_snapshot(each) for each in answer.json()["snapshots"] if each.get("description") == description]

    def delete_snapshot(self, context: RequestContext, snapshot_id: str) -> None:
        """Deletes a snapshot that we made, if it exists."""
        what = f"delete snapshot {snapshot_id}"
        with suppress(errors.NotFound):
            self._settled(lambda: self.show_snapshot(context, snapshot_id), f"Snapshot {snapshot_id}", 180.0)
            self._call(context, "DELETE", "/v3/snapshots/{snapshot_id}", what, ours=True, snapshot_id=snapshot_id)

    def check_snapshots_left(self, context: RequestContext, count: int) -> None:
        """Raises OverQuota if the requester's project may not make ``count`` more snapshots."""
        absolute = self._call(context, "GET", "/v3/limits", "show limits").json()["limits"]["absolute"]
        limit, used = absolute["maxTotalSnapshots"], absolute["totalSnapshotsUsed"]
        if 0 <= limit < used + count:
            raise errors.OverQuota(
                f"Quota exceeded for snapshots: requested {count}, but already used {used} of {limit} snapshots."
            )


def volume_missing(volume_id: str) -> errors.VolumeNotFound:
    return errors.VolumeNotFound(f"Volume {volume_id} could not be found.")


def _snapshot(document: Mapping[str, Any]) -> Snapshot:
    return Snapshot(document["id"], document["volume_id"], document["size"], document["status"])
