"""An id that a user wrote somewhere else is named by that user, too: it is looked at with their token before it is used.

The metadata of a volume say which image it was made from, and its owner may change them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud
from tests.security.credentials.attackers import Caller, Things, caller, things_of

CLOUD: dict[str, Any] = {"hosts_per_cell": 1}
RESCUABLE = {"hw_rescue_device": "disk", "hw_rescue_bus": "virtio"}


@pytest.fixture(scope="module")
def of_others(module_cloud: Cloud) -> Things:
    return things_of(module_cloud.connection("other"))


@pytest.fixture
def user(cloud: Cloud) -> Caller:
    return caller(cloud, "demo")


def from_volume(cloud: Cloud, **metadata: str) -> Any:
    """A server on a volume whose metadata say what its owner wrote."""
    volume = cloud.volume(image_id=cloud.image_id)
    cloud.member.block_storage.set_volume_image_metadata(volume, **metadata)
    root = {"boot_index": 0, "source_type": "volume", "destination_type": "volume", "uuid": volume.id}
    server = cloud.boot_from_volume(block_device_mapping=[root])
    cloud.settle()
    return server


def caches(cloud: Cloud, image_id: str) -> list[str]:
    """The hosts that have an image's data."""
    return [
        name for name, service in cloud.embedded.computes.items() if service.host.image_cache.path(image_id).exists()
    ]


@pytest.mark.parametrize("is_cached", [False, True])
def test_no_server_is_rescued_with_an_image_that_only_its_volume_names(
    cloud: Cloud, user: Caller, of_others: Things, is_cached: bool
) -> None:
    """Hosts fetch images with credentials of their own, and use what another project's server has left in their cache."""
    server = from_volume(cloud, image_id=of_others.image, **RESCUABLE)
    if is_cached:
        theirs = cloud.connection("other").compute.create_server(
            name="theirs", flavor_id="any.small", image_id=of_others.image, networks="none"
        )
        cloud.connection("other").compute.wait_for_server(theirs, interval=0.05)
        cloud.connection("other").compute.delete_server(theirs.id)
    before = caches(cloud, of_others.image)
    answer = user.ask("POST", f"/servers/{server.id}/action", {"rescue": None})
    assert answer.status_code == 400, answer.text
    assert of_others.image in answer.text
    cloud.settle()
    assert cloud.show(server).status == "ACTIVE"
    assert caches(cloud, of_others.image) == before


def test_a_server_on_a_volume_is_rescued_with_an_image_that_its_user_may_use(cloud: Cloud, user: Caller) -> None:
    server = from_volume(cloud, image_id=cloud.image_id, **RESCUABLE)
    assert user.ask("POST", f"/servers/{server.id}/action", {"rescue": None}).status_code == 200
    assert cloud.wait(server, "RESCUE")
