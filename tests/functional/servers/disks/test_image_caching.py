"""Images are fetched by the hosts of an aggregate before a server is made from them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud, until

IMAGE = "77777777-2222-3333-4444-555555555555"


@pytest.fixture
def aggregate(cloud: Cloud) -> Any:
    found = cloud.admin.compute.create_aggregate(name="to-be-cached")
    for host in ("cell1-host1", "cell2-host1"):
        cloud.admin.compute.add_host_to_aggregate(found, host)
    yield found
    for host in ("cell1-host1", "cell2-host1"):
        cloud.admin.compute.remove_host_from_aggregate(found, host)
    cloud.admin.compute.delete_aggregate(found)


def ask(cloud: Cloud, aggregate_id: Any, *images: str, by: Any = None) -> int:
    body = {"cache": [{"id": image} for image in images]}
    answer = (by or cloud.admin).compute.post(f"/os-aggregates/{aggregate_id}/images", json=body, microversion="2.81")
    return int(answer.status_code)


@pytest.mark.embedded("looks into computes")
def test_hosts_of_every_cell_fetch_images(cloud: Cloud, aggregate: Any) -> None:
    image = cloud.member.image.create_image(
        name="new", data=b"bytes of an image", disk_format="raw", container_format="bare", wait=True
    )
    caches = {name: compute.host.image_cache for name, compute in cloud.embedded.computes.items()}
    # One that is not there, and one that a host has, keep nobody from the others.
    assert ask(cloud, aggregate.id, IMAGE, cloud.image_id, image.id) == 202
    wanted = {"cell1-host1", "cell2-host1"}
    until(
        lambda: {name for name, cache in caches.items() if cache.path(image.id).exists()},
        lambda having: having == wanted,
        "the image on the aggregate's hosts",
    )
    assert all(caches[host].path(cloud.image_id).exists() for host in wanted)
    assert not any(cache.path(IMAGE).exists() for cache in caches.values())
    cloud.member.image.delete_image(image)


def test_requests_to_cache_images_that_are_not_allowed_are_refused(cloud: Cloud, aggregate: Any) -> None:
    assert ask(cloud, aggregate.id, IMAGE, by=cloud.member) == 403
    assert ask(cloud, "one", IMAGE) == 400
    assert ask(cloud, aggregate.id, IMAGE, IMAGE) == 400
    assert ask(cloud, aggregate.id) == 400
    assert ask(cloud, 4711, IMAGE) == 404
