"""Volumes, ports, and images of shelved servers that belong to another project than their server.

They work (an administrator may have wanted it), but are worth a look: the server's users can neither see nor change them, and
their owners can. To a token of the server's users, the other services answer "not found".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from causeway.audit.snapshot import Record, Snapshot
from causeway.clients.port_owners import is_of_project
from causeway.model.audit import Disagreement, Severity


def of_volumes(snapshot: Snapshot) -> Iterator[Disagreement]:
    volumes = snapshot.volumes or {}
    for home in snapshot.homes:
        for device in home.block_devices:
            volume = volumes.get(device.volume_id or "")
            if volume is not None and volume.project_id not in (None, home.project_id):
                yield _foreign("volume", volume.id, volume.project_id, home)


def of_ports(snapshot: Snapshot) -> Iterator[Disagreement]:
    for port in (snapshot.ports or {}).values():
        home = snapshot.home(port["device_id"])
        if home is None or is_of_project(port, home.project_id):
            continue
        if port["id"] in home.port_ids:
            yield _foreign("port", port["id"], port.get("project_id"), home)
        else:
            yield _stranger(port, home)


def of_images(snapshot: Snapshot) -> Iterator[Disagreement]:
    images = {image.id: image for image in snapshot.images or []}
    for home in snapshot.homes:
        image = images.get(home.shelved_image_id or "")
        if image is not None and image.owner and image.owner != home.project_id:
            yield _foreign("image", image.id, image.owner, home)


def _stranger(port: Mapping[str, Any], home: Record) -> Disagreement:
    """Nobody but its owner said that the port is the server's (`causeway.clients.port_owners`)."""
    return Disagreement(
        "port.of_stranger",
        Severity.WARNING,
        f"port {port['id']}",
        home.uuid,
        f"Port {port['id']} of project {port.get('project_id')} names the server, which is of project {home.project_id} and was"
        " never given it. It is not used.",
        left="Ask the owner of the port, or delete it.",
    )


def _foreign(kind: str, identity: str, owner: str | None, home: Record) -> Disagreement:
    return Disagreement(
        f"{kind}.of_other_project",
        Severity.WARNING,
        f"{kind} {identity}",
        home.uuid,
        f"{kind.capitalize()} {identity} belongs to project {owner}, its server to project {home.project_id}.",
        left="If nobody wanted that, detach it; its owner can transfer it, or the server gets another one.",
    )
