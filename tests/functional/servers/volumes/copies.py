"""Images of servers on volumes that tests make, all named ``copy``, and their snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.functional.servers.moves_cloud import Cloud, until


def snapshots(cloud: Cloud) -> list[Any]:
    return list(cloud.admin.block_storage.snapshots(all_projects=True))


def delete_all(cloud: Cloud, look: Callable[[Cloud], list[Any]]) -> None:
    """Deletes the servers, which may hold the volumes, then the images and the snapshots that ``look`` finds."""
    cloud.clean()
    for image in cloud.admin.image.images(name="copy"):
        cloud.admin.image.delete_image(image)
    for snapshot in look(cloud):
        cloud.admin.block_storage.delete_snapshot(snapshot)
    until(lambda: look(cloud), lambda left: not left, "the snapshots to go")
