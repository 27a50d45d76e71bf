"""Real guests that go to another cell with their memory, asked for over the REST API: live, or near-live."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest

from causeway.virt.lab.hosts import Lab, missing
from causeway.virt.libvirt.commands import run
from causeway.virt.live_guest import Presence
from tests.functional.servers import patience
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import until
from tests.integration.embedded_guests import cloud_with_guests

REASON = missing()
HOSTS = ("cell1-host1", "cell2-host1")
# A process that says, again and again, that it is still the same one.
TICKING = b"""#!/bin/sh
id=$(cat /proc/sys/kernel/random/uuid)
(n=0; while sleep 0.5; do n=$((n+1)); echo TICK id=$id n=$n > /dev/console; done) &
"""

pytestmark = [
    pytest.mark.libvirt,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def module_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedCloud]:
    with cloud_with_guests(tmp_path_factory.mktemp("cloud"), cells=2, hosts_per_cell=1) as embedded:
        yield AuditedCloud(embedded)


@pytest.fixture
def cloud(module_cloud: AuditedCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[AuditedCloud]:
    monkeypatch.setattr(patience, "PATIENCE", 120.0)
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    module_cloud.clean()


def driver(cloud: AuditedCloud, host: str) -> Any:
    return cloud.parts.computes[host].host.driver


def ticks(cloud: AuditedCloud, server: Any, host: str, after: int = 0) -> tuple[str, int]:
    """Who ticks in the guest there, and how often it did."""

    def look() -> list[tuple[str, str]]:
        console = driver(cloud, host).console_output(server.id).decode(errors="replace")
        return re.findall(r"TICK id=(\S+) n=(\d+)", console)

    found = until(look, lambda found: len(found) > 1 and int(found[-1][1]) > after, "the guest to tick")
    identity, number = found[-1]
    return identity, int(number)


def migrated(cloud: AuditedCloud, server: Any, host: str) -> str:
    """The recipe by which it went."""
    wanted = {"os-migrateLive": {"host": host, "block_migration": "auto"}}
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json=wanted, microversion="2.96")
    assert answer.status_code == 202, answer.text
    until(lambda: cloud.show(server), lambda found: found.task_state is None, "the live migration to end")
    cloud.settle()
    assert (cloud.show(server).compute_host, cloud.migration(server).status) == (host, "completed")
    recipe: str = cloud.moves(server)[-1].recipe
    return recipe


def booted(cloud: AuditedCloud) -> tuple[Any, str, str]:
    """A ticking server with a volume, where it is, and the host of the other cell."""
    server = cloud.boot(flavor="any.small", config_drive=True, user_data=base64.b64encode(TICKING).decode())
    source = cloud.show(server).compute_host
    # A disk that comes while the kernel looks for disks may get the name of the first one.
    ticks(cloud, server, source)
    cloud.attach(server, cloud.volume())
    return server, source, next(host for host in HOSTS if host != source)


def check_left_nothing(cloud: AuditedCloud, server: Any, host: str) -> None:
    for other in HOSTS:
        assert driver(cloud, other).presence(server.id) is (Presence.RUNNING if other == host else Presence.ABSENT)
        assert driver(cloud, other).inspect(server.id).has_disks is (other == host)
    assert {each["status"] for each in cloud.attachments(server)} == {"attached"}
    assert cloud.audit().is_clean


def test_a_guest_goes_live_to_another_cell_and_near_live_back(cloud: AuditedCloud) -> None:
    """It is the same process that continues in either case; hypervisors that don't reach one another hand no guest over."""
    server, source, there = booted(cloud)
    identity, number = ticks(cloud, server, source)

    assert migrated(cloud, server, there) == "live_migration"
    again = ticks(cloud, server, there, after=number)
    assert again[0] == identity
    check_left_nothing(cloud, server, there)

    with Lab(cloud.embedded.state.lab).network.hypervisors_apart(there):
        assert migrated(cloud, server, source) == "near_live_migration"
    assert ticks(cloud, server, source, after=again[1])[0] == identity
    check_left_nothing(cloud, server, source)


def test_the_disks_of_a_paused_guest_are_the_same_at_both_ends(
    cloud: AuditedCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, source, there = booted(cloud)
    identity, number = ticks(cloud, server, source)
    cloud.admin.compute.pause_server(server.id)
    cloud.wait(server, "PAUSED")
    leaving, compared = driver(cloud, source), []
    destroy = leaving.destroy

    def compare(*args: Any, **more: Any) -> None:
        # The guest stands still at the target: what is left at the source must be what it has there.
        disks = [driver(cloud, host)._disks.folder(server.id) / "disk" for host in (source, there)]
        compared.append(run("qemu-img", "compare", "-U", *disks))
        destroy(*args, **more)

    monkeypatch.setattr(leaving, "destroy", compare)
    assert migrated(cloud, server, there) == "live_migration"
    assert compared and "identical" in compared[0]
    assert cloud.show(server).status == "PAUSED"
    cloud.admin.compute.unpause_server(server.id)
    cloud.wait(server, "ACTIVE")
    assert ticks(cloud, server, there, after=number)[0] == identity
    check_left_nothing(cloud, server, there)
