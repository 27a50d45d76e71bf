"""What tests of rescue do, and what they look at."""

from __future__ import annotations

import uuid as uuids
from typing import Any

from causeway.model import rescue
from causeway.virt.driver import RESCUE_DISK, ROOT_DISK
from tests.functional.servers.moves_cloud import Cloud

MARK = "what the user has on its disk"


def ask(connection: Any, server: Any, action: str, body: Any = None, version: str = "2.96") -> Any:
    return connection.compute.post(f"/servers/{server.id}/action", json={action: body}, microversion=version)


def message(answer: Any) -> str:
    (fault,) = answer.json().values()
    return str(fault["message"])


def make_image(cloud: Cloud, **properties: str) -> Any:
    return cloud.admin.image.create_image(
        name=f"rescue-{uuids.uuid4()}",
        disk_format="raw",
        container_format="bare",
        visibility="public",
        data=b"r" * 100,
        **properties,
    )


def with_mark(cloud: Cloud, **fields: Any) -> Any:
    """A server that runs, with something on its disk."""
    server = cloud.boot("rescued", **fields)
    driver_of(cloud, server).guest_write(server.id, MARK)
    return server


def rescued(cloud: Cloud, server: Any, **body: Any) -> Any:
    answer = ask(cloud.member, server, "rescue", body)
    assert answer.status_code == 200, answer.text
    found = cloud.wait(server, "RESCUE")
    cloud.settle()
    return found


def unrescued(cloud: Cloud, server: Any) -> Any:
    answer = ask(cloud.member, server, "unrescue")
    assert answer.status_code == 202, answer.text
    found = cloud.wait(server, "ACTIVE")
    cloud.settle()
    return found


def driver_of(cloud: Cloud, server: Any) -> Any:
    return cloud.driver(cloud.show(server).compute_host)


def guest_of(cloud: Cloud, server: Any) -> Any:
    return driver_of(cloud, server).files.guests[server.id]


def disks_of(cloud: Cloud, server: Any) -> dict[str, str]:
    """device -> the file that the guest has as it, by name."""
    return {device: path.name for device, path in guest_of(cloud, server).local_files().items()}


def is_rescued(cloud: Cloud, server: Any) -> None:
    guest = guest_of(cloud, server)
    assert guest.is_rescued and guest.local_files()[guest.root_device].name == RESCUE_DISK
    assert driver_of(cloud, server).has_rescue_disk(server.id)


def has_its_own(cloud: Cloud, server: Any) -> None:
    """Nothing is left of a rescue, and what the user has is there."""
    guest = guest_of(cloud, server)
    assert not guest.is_rescued and not driver_of(cloud, server).has_rescue_disk(server.id)
    if guest.root_disk is not None:
        assert guest.local_files()[guest.root_device].name == ROOT_DISK
    assert MARK in guest.read(guest.root_device)
    known = cloud.record(server, "cell1").system_metadata
    assert known == rescue.without(known)
