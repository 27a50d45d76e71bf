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
from causeway.clients.rights import OF_SERVER, ONLY_USER, SERVICE, CalledAs, named
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
    def _call(
        self, context: RequestContext | None, method: str, route: str, what: str, **more: Any
    ) -> requests.Response: ...

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
            called_as=ONLY_USER,
            body={"snapshot": wanted},
            missing=volume_missing(volume_id),
        )
        snapshot_id: str = answer.json()["snapshot"]["id"]
        return snapshot_id

    def show_snapshot(self, context: RequestContext, snapshot_id: str) -> Snapshot:
        """A snapshot that a user named. Raises NotFound."""
        snapshot = self._show_snapshot(context, snapshot_id, named(snapshot_id))
        context.has_checked(snapshot_id)
        return snapshot

    def _show_snapshot(self, context: RequestContext, snapshot_id: str, called_as: CalledAs) -> Snapshot:
        answer = self._call(
            context,
            "GET",
            "/v3/snapshots/{snapshot_id}",
            f"show snapshot {snapshot_id}",
            called_as=called_as,
            snapshot_id=snapshot_id,
            missing=errors.NotFound(f"Snapshot {snapshot_id} could not be found."),
        )
        return _snapshot(answer.json()["snapshot"])

    def wait_for_snapshot(self, context: RequestContext, snapshot_id: str, *, timeout: float = 180.0) -> None:
        """Waits until a snapshot that we made is available.

        Raises InvalidVolume if it fails, ServiceFailed after ``timeout`` seconds.
        """
        snapshot = self._settle_snapshot(context, snapshot_id, timeout)
        if snapshot.status != "available":
            raise errors.InvalidVolume(
                f"Snapshot {snapshot_id} of volume {snapshot.volume_id} did not become available: it is {snapshot.status}."
            )

    def snapshots_named(self, context: RequestContext, name: str, description: str) -> list[Snapshot]:
        """The snapshots with this name and description in all projects, read with our own credentials."""
        query = {"all_tenants": "1", "name": name}
        what = f"list the snapshots named {name!r}"
        answer = self._call(context, "GET", "/v3/snapshots/detail", what, called_as=SERVICE, query=query)
        # A service may be configured to ignore filters.
        return [_snapshot(each) for each in answer.json()["snapshots"] if each.get("description") == description]

    def delete_snapshot(self, context: RequestContext, snapshot_id: str) -> None:
        """Deletes a snapshot that we made, if it exists."""
        what = f"delete snapshot {snapshot_id}"
        with suppress(errors.NotFound):
            self._settle_snapshot(context, snapshot_id, 180.0)
            self._call(
                context, "DELETE", "/v3/snapshots/{snapshot_id}", what, called_as=OF_SERVER, snapshot_id=snapshot_id
            )

    def _settle_snapshot(self, context: RequestContext, snapshot_id: str, timeout: float) -> Snapshot:
        return self._settled(
            lambda: self._show_snapshot(context, snapshot_id, OF_SERVER), f"Snapshot {snapshot_id}", timeout
        )

    def check_snapshots_left(self, context: RequestContext, count: int) -> None:
        """Raises OverQuota if the requester's project may not make ``count`` more snapshots."""
        answer = self._call(context, "GET", "/v3/limits", "show limits", called_as=named())
        absolute = answer.json()["limits"]["absolute"]
        limit, used = absolute["maxTotalSnapshots"], absolute["totalSnapshotsUsed"]
        if 0 <= limit < used + count:
            raise errors.OverQuota(
                f"Quota exceeded for snapshots: requested {count}, but already used {used} of {limit} snapshots."
            )


def volume_missing(volume_id: str) -> errors.VolumeNotFound:
    return errors.VolumeNotFound(f"Volume {volume_id} could not be found.")


def _snapshot(document: Mapping[str, Any]) -> Snapshot:
    return Snapshot(document["id"], document["volume_id"], document["size"], document["status"])
