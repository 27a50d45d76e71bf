"""What users do with a server on a certain host, for tests that watch who gets which messages, or that falsify them.

Each journey takes the cloud and a server. What is refused or fails on the way ends nothing: the next step follows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from openstack import exceptions

from causeway.model.sagas import SagaState
from causeway.store.api import journal
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.patience import until

HOST = "cell1-host1"


def at_rest(cloud: Cloud, server: Any) -> Any:
    """The server when no operation works on it, or one that can't end as long as its host lies."""
    until(
        lambda: journal.active_of_server(cloud.parts.api_database, server.id),
        lambda one: one is None or one.state is SagaState.STUCK,
        f"the end of what works on {server.id}",
    )
    return cloud.admin.compute.find_server(server.id, all_projects=True)


def ended(cloud: Cloud, server: Any) -> dict[str, Any]:
    """The server, as its user sees it, when it is built and nothing works on it any more."""
    found: dict[str, Any] = until(
        lambda: cloud.json_of(server),
        lambda seen: seen["status"] != "BUILD" and seen["OS-EXT-STS:task_state"] is None,
        f"server {server.id} to end its task",
    )
    return found


def built(cloud: Cloud) -> Any:
    volume = cloud.volume()
    devices = [
        {"boot_index": 0, "source_type": "image", "destination_type": "local", "uuid": cloud.image_id},
        {"boot_index": -1, "source_type": "volume", "destination_type": "volume", "uuid": volume.id},
    ]
    return cloud.admin.compute.create_server(
        name="built",
        flavor_id="gen1.small",
        image_id=cloud.image_id,
        networks=[{"uuid": cloud.network_id}],
        block_device_mapping=devices,
        availability_zone=f"nova:{HOST}",
    )


def nothing(_cloud: Cloud, _server: Any) -> None:
    """The server is only built."""


def devices_changed(cloud: Cloud, server: Any) -> None:
    volume = cloud.volume()
    with suppress(exceptions.SDKException):
        cloud.member.compute.create_volume_attachment(server.id, volume_id=volume.id)
    at_rest(cloud, server)
    with suppress(exceptions.SDKException):
        cloud.member.compute.create_server_interface(server.id, net_id=cloud.network_id)
    at_rest(cloud, server)
    with suppress(exceptions.SDKException):
        cloud.member.compute.delete_volume_attachment(server.id, volume.id)


def moved(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.resize_server(server.id, "gen2.small")
    if at_rest(cloud, server).status == "VERIFY_RESIZE":
        cloud.member.compute.revert_server_resize(server.id)


def migrated(cloud: Cloud, server: Any) -> None:
    cloud.admin.compute.migrate_server(server.id)
    if at_rest(cloud, server).status == "VERIFY_RESIZE":
        cloud.member.compute.confirm_server_resize(server.id)


def migrated_live(cloud: Cloud, server: Any) -> None:
    cloud.admin.compute.live_migrate_server(server.id, host=None, block_migration="auto")


def stored(cloud: Cloud, server: Any) -> None:
    with suppress(exceptions.SDKException):
        cloud.member.compute.create_server_image(server.id, name="stored")
    at_rest(cloud, server)
    with suppress(exceptions.SDKException):
        cloud.member.compute.shelve_server(server.id)
    if at_rest(cloud, server).status == "SHELVED_OFFLOADED":
        cloud.member.compute.unshelve_server(server.id)


def rebooted(cloud: Cloud, server: Any) -> None:
    acts: list[Callable[[], Any]] = [
        lambda: cloud.member.compute.reboot_server(server.id, "HARD"),
        lambda: cloud.member.compute.stop_server(server.id),
        lambda: cloud.member.compute.start_server(server.id),
        lambda: cloud.member.compute.rescue_server(server.id),
        lambda: cloud.member.compute.unrescue_server(server.id),
        lambda: cloud.member.compute.create_console(server.id, "serial"),
    ]
    for act in acts:
        with suppress(exceptions.SDKException):
            act()
        at_rest(cloud, server)


JOURNEYS: list[Callable[[Cloud, Any], None]] = [
    nothing,
    devices_changed,
    moved,
    migrated,
    migrated_live,
    stored,
    rebooted,
]
