"""The ways in which a server is moved, as an administrator requests them."""

from __future__ import annotations

from typing import Any

from causeway.virt.lab.hosts import Lab
from tests.functional.servers.moves_cloud import until
from tests.integration.operating_system.debian_servers import Debian


def live(debian: Debian, host: str) -> str:
    """Live migration to a host; returns the recipe, or "" inside a cell, where it is none."""
    cloud = debian.cloud
    before = len(cloud.moves(debian.server))
    _act(debian, {"os-migrateLive": {"host": host, "block_migration": "auto"}})
    until(lambda: cloud.show(debian.server), lambda found: found.task_state is None, "the live migration to end")
    cloud.settle()
    migration = cloud.migration(debian.server)
    assert (debian.host, migration.status) == (host, "completed"), cloud.faults(debian.server)
    return "".join(move.recipe for move in cloud.moves(debian.server)[before:])


def near_live(debian: Debian, host: str) -> str:
    """The same while the hypervisor of its own host reaches no other one."""
    with Lab(debian.cloud.embedded.state.lab).network.hypervisors_apart(debian.host):
        return live(debian, host)


def migrated(debian: Debian, host: str) -> None:
    """Cold migration to a host; the user has still to confirm it."""
    _act(debian, {"migrate": {"host": host}})
    debian.cloud.wait(debian.server, "VERIFY_RESIZE")
    debian.cloud.settle()
    assert debian.host == host


def evacuated(debian: Debian) -> None:
    """Evacuation from a host that is dead. From 2.95 on the server is off then, and its user starts it."""
    _act(debian, {"evacuate": {}}, status=200)
    debian.cloud.settle()
    debian.cloud.wait(debian.server, "SHUTOFF")
    debian.cloud.member.compute.start_server(debian.server.id)
    debian.cloud.wait(debian.server, "ACTIVE")


def other_cell(debian: Debian) -> str:
    """The first host of the other cell."""
    return "cell2-host1" if debian.host.startswith("cell1") else "cell1-host1"


def _act(debian: Debian, body: dict[str, Any], status: int = 202) -> None:
    answer = debian.cloud.admin.compute.post(f"/servers/{debian.server.id}/action", json=body, microversion="2.96")
    assert answer.status_code == status, answer.text
