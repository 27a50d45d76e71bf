"""A host dies in a warm move when its part is done and not yet noted: the order that is repeated ends as the first did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.functional.servers.conftest import ProcessDiedError
from tests.functional.servers.dying_threads import SOON_NOTICED, THREADS_DIE
from tests.functional.servers.moves_cloud import Cloud

from .test_warm_moves import content, has_moved, resize, server, source, way, without_cold_copies

__all__ = ["server", "way"]

CLOUD = SOON_NOTICED
pytestmark = THREADS_DIE
AT_SOURCE, AT_TARGET = "prep_snapshot_based_resize_at_source", "finish_snapshot_based_resize_at_dest"


def check(cloud: Cloud, server: Any) -> None:
    has_moved(cloud, server)
    assert "before" in content(cloud, server)
    assert cloud.moves(server)[0].data["warm"]["ended"] is None
    assert cloud.reality(server)["transfers"] == []
    assert cloud.temporary_images() == []


@pytest.mark.parametrize("when", ["after", "recorded"])
@pytest.mark.parametrize("order", [AT_SOURCE, AT_TARGET], ids=["left", "come"])
def test_a_host_dies_when_the_guest_has_left_or_come(
    cloud: Cloud, server: Any, way: str, dies_at: Callable[[str], None], order: str, when: str
) -> None:
    without_cold_copies(cloud)
    dies_at(f"compute.{order}.{when}")
    resize(cloud, server, way)
    check(cloud, server)
    cloud.reverted(server)
    assert "before" in content(cloud, server)


def test_the_target_loses_its_power_when_the_guest_has_come(
    cloud: Cloud, server: Any, way: str, at_point: Callable[[str, Callable[[], None]], None]
) -> None:
    """Its disks are the only copy there that is whole: the guest is made again with them."""
    without_cold_copies(cloud)
    before = cloud.show(server).compute_host

    def lose_power() -> None:
        for host in cloud.parts.computes:
            if host != before and server.id in cloud.driver(host).list_guests():
                cloud.driver(host).power_off(server.id, 0)
        raise ProcessDiedError

    at_point(f"compute.{AT_TARGET}.after", lose_power)
    resize(cloud, server, way)
    check(cloud, server)
    assert source(cloud, server).inspect(server.id).power_state == 1
