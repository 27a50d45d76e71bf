"""An agent in a guest that is copied while it runs keeps its file systems still for a moment."""

from __future__ import annotations

import uuid as uuids
from typing import Any

import pytest

from causeway.errors import GuestFailed
from causeway.virt.simulated import agent
from tests.functional.servers.moves_cloud import PATIENCE, Cloud
from tests.functional.servers.warm.test_warm_moves import content, has_moved, resize, source, way, without_cold_copies

__all__ = ["way"]

pytestmark = pytest.mark.embedded("looks into hosts, and breaks them")


def server_with(cloud: Cloud, **properties: str) -> Any:
    image = cloud.member.image.create_image(
        name=f"image {uuids.uuid4()}", disk_format="raw", container_format="bare", data=b"of an agent", **properties
    )
    server = cloud.boot(image_id=image.id)
    source(cloud, server).guest_write(server.id, "before")
    return server


def freezes(cloud: Cloud, server: Any, way: str) -> int:
    """How often the guest was frozen until it is handed over."""
    cloud.option("warm_round_seconds", 0.0, "moves")
    cloud.option("warm_rounds", 3, "moves")
    host = source(cloud, server)

    def begin(*args: Any, works: Any = host.begin_round, **more: Any) -> Any:
        host.guest_write(server.id, "meanwhile")
        return works(*args, **more)

    order = "prep_snapshot_based_resize_at_source"
    with pytest.MonkeyPatch.context() as patches, cloud.held(order) as arrived:
        patches.setattr(host, "begin_round", begin)
        resize(cloud, server, way)
        assert arrived.wait(PATIENCE)
        guest = host.files.guests[server.id]
        assert not guest.is_frozen
    has_moved(cloud, server)
    assert "meanwhile" in content(cloud, server)
    return int(guest.freezes)


def test_an_agent_keeps_the_file_systems_still_when_a_round_begins_but_the_first(cloud: Cloud, way: str) -> None:
    without_cold_copies(cloud)
    server = server_with(cloud, hw_qemu_guest_agent="yes")
    assert freezes(cloud, server, way) == 2
    assert cloud.moves(server)[0].data["warm"]["rounds"] == 3


@pytest.mark.parametrize("properties", [{}, {"hw_qemu_guest_agent": "yes"}], ids=["none", "mute"])
def test_a_guest_without_an_agent_that_answers_is_copied_all_the_same(
    cloud: Cloud, way: str, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if properties:
        monkeypatch.setattr(agent, "freeze", mute)
    without_cold_copies(cloud)
    server = server_with(cloud, **properties)
    assert freezes(cloud, server, way) == 0
    memory = cloud.moves(server)[0].data["warm"]
    assert (memory["rounds"], memory["ended"]) == (3, None)


def mute(_files: Any, guest: Any, _instance: Any) -> None:
    raise GuestFailed(f"The agent of guest {guest.uuid} does not answer.")


def test_what_must_be_still_and_is_not_is_copied_when_the_guest_is_off(
    cloud: Cloud, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first round; what changed since is known."""
    monkeypatch.setattr(agent, "freeze", mute)
    without_cold_copies(cloud)
    server = server_with(cloud, hw_qemu_guest_agent="yes", os_require_quiesce="yes")
    assert freezes(cloud, server, way) == 0
    memory = cloud.moves(server)[0].data["warm"]
    assert memory["rounds"] == 1
    assert memory["received"] is not None
    assert "no agent in it answers" in memory["ended"]
