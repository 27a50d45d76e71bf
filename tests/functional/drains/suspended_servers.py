"""What tests of drained suspended servers share: one that has something in memory, and what must be true of it afterwards."""

from __future__ import annotations

from typing import Any

from .drains_cloud import DrainsCloud
from .test_left_behind import ONE, act, cell_of


def suspended(cloud: DrainsCloud, host: str = ONE, **more: Any) -> tuple[Any, list[str]]:
    """A suspended server, and what its guest has in memory."""
    server = cloud.on(host, **more)
    cloud.attach(server, cloud.volume())
    cloud.driver(host).guest_write(server.id, "on disk")
    memory = cloud.remember(server, "a line")
    act(cloud, server, "suspend")
    cloud.wait(server, "SUSPENDED")
    return server, memory


def check(cloud: DrainsCloud, server: Any, memory: list[str], cell: str) -> None:
    """It is suspended there and nowhere else, and continues there with all that it had."""
    cloud.settle()
    shown = cloud.show(server)
    assert (shown.status, shown.power_state, shown.task_state) == ("SUSPENDED", 4, None)
    assert cell_of(cloud, server) == cell
    assert cloud.temporary_images() == []
    cloud.check_left_nothing(server, shown.compute_host)
    cloud.end_drains()
    resumed(cloud, server, memory)


def resumed(cloud: DrainsCloud, server: Any, memory: list[str]) -> None:
    act(cloud, server, "resume")
    cloud.wait(server, "ACTIVE")
    driver = cloud.driver(cloud.host_of(server))
    assert driver.guest_memory(server.id) == memory
    assert "on disk" in driver.guest_read(server.id)
    assert b"boot=2" not in driver.console_output(server.id)
    assert driver.saved_memory(server.id) is None
    assert {each["status"] for each in cloud.attachments(server)} == {"attached"}
    assert cloud.audit().disagreements == []
