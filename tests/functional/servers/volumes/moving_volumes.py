"""Volumes in use that block storage moves: it makes the new volume, and asks Compute to swap."""

from __future__ import annotations

from typing import Any

from tests.functional.servers.moves_cloud import Cloud


def moving(cloud: Cloud, volume: Any, *, size: int = 1) -> Any:
    """A volume that block storage is about to move another one to."""
    new = cloud.volume(size=size, name="target")
    for one, status in ((volume, "migrating"), (new, f"target:{volume.id}")):
        act(cloud, one, "os-reset_status", {"migration_status": status})
    return new


def act(cloud: Cloud, volume: Any, name: str, body: dict[str, Any]) -> Any:
    return cloud.admin.block_storage.post(f"/volumes/{volume.id}/action", json={name: body})


def ask(cloud: Cloud, server: Any, old: Any, new: Any, version: str = "2.96", **more: Any) -> Any:
    body = {"volumeAttachment": {"volumeId": new.id, **more}}
    return cloud.admin.compute.put(
        f"/servers/{server.id}/os-volume_attachments/{old.id}", json=body, microversion=version
    )


def swapped(cloud: Cloud, server: Any, old: Any, new: Any) -> Any:
    answer = ask(cloud, server, old, new)
    assert answer.status_code == 202, answer.text
    return cloud.wait(server, cloud.show(server).status)
