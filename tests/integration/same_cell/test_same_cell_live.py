"""Real guests that go to the other host of their cell without stopping, asked for over the REST API."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest

from causeway.virt.lab.hosts import missing
from causeway.virt.live_guest import Presence
from tests.functional.servers import patience
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import until
from tests.integration.embedded_guests import cloud_with_guests

REASON = missing()
HOSTS = ("cell1-host1", "cell1-host2")
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
    with cloud_with_guests(tmp_path_factory.mktemp("cloud"), cells=1, hosts_per_cell=2) as embedded:
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


def ticks(cloud: AuditedCloud, server: Any, host: str) -> tuple[str, int]:
    """Who ticks in the guest there, and how often it did."""

    def look() -> list[tuple[str, str]]:
        console = driver(cloud, host).console_output(server.id).decode(errors="replace")
        return re.findall(r"TICK id=(\S+) n=(\d+)", console)

    identity, number = until(look, lambda found: len(found) > 1, "the guest to tick")[-1]
    return identity, int(number)


def migrated(cloud: AuditedCloud, server: Any) -> Any:
    wanted = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json=wanted, microversion="2.96")
    assert answer.status_code == 202, answer.text
    until(lambda: cloud.show(server), lambda found: found.task_state is None, "the live migration to end")
    cloud.settle()
    return cloud.show(server)


@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
def test_a_guest_goes_to_the_other_host_with_its_volume_and_back(cloud: AuditedCloud, paused: bool) -> None:
    server = cloud.boot(config_drive=True, user_data=base64.b64encode(TICKING).decode())
    source = cloud.show(server).compute_host
    target = HOSTS[1] if source == HOSTS[0] else HOSTS[0]
    identity, number = ticks(cloud, server, source)
    if not paused:
        cloud.attach(server, cloud.volume())
    else:
        cloud.admin.compute.pause_server(server.id)
        cloud.wait(server, "PAUSED")

    after = migrated(cloud, server)
    assert (after.status, after.compute_host) == ("PAUSED" if paused else "ACTIVE", target), cloud.migration(server)
    assert driver(cloud, source).presence(server.id) is Presence.ABSENT
    assert not driver(cloud, source).inspect(server.id).has_disks
    if paused:
        cloud.admin.compute.unpause_server(server.id)
        cloud.wait(server, "ACTIVE")
    there = ticks(cloud, server, target)
    assert there[0] == identity and there[1] > number
    assert cloud.audit().is_clean

    assert migrated(cloud, server).compute_host == source
    assert ticks(cloud, server, source)[0] == identity
    assert cloud.audit().is_clean


@pytest.mark.parametrize("ends", ["aborted", "forced"])
def test_a_migration_that_takes_long_is_ended_by_its_user(cloud: AuditedCloud, ends: str) -> None:
    server = cloud.boot(config_drive=True, user_data=base64.b64encode(TICKING).decode())
    source = cloud.show(server).compute_host
    target = HOSTS[1] if source == HOSTS[0] else HOSTS[0]
    identity, number = ticks(cloud, server, source)
    host = cloud.parts.computes[source].host
    conf = host.conf
    conf.set_override("live_migration_bandwidth", 2, "libvirt")
    # It runs while its memory travels, as a guest with KVM does; else it would go as fast as it can.
    host.driver._live.settings.trust_emulator = True
    try:
        wanted = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
        cloud.admin.compute.post(f"/servers/{server.id}/action", json=wanted, microversion="2.96")
        path = f"/servers/{server.id}/migrations"
        shown = until(
            lambda: cloud.admin.compute.get(path, microversion="2.96").json()["migrations"],
            lambda found: found and found[0]["status"] == "running" and found[0]["memory_processed_bytes"],
            "the guest's memory to travel",
        )[0]
        assert cloud.audit().is_clean, "it is at both ends, for a reason"
        if ends == "aborted":
            answer = cloud.admin.compute.delete(f"{path}/{shown['id']}", microversion="2.96")
        else:
            answer = cloud.admin.compute.post(
                f"{path}/{shown['id']}/action", json={"force_complete": None}, microversion="2.96"
            )
        assert answer.status_code == 202, answer.text
        until(lambda: cloud.show(server), lambda found: found.task_state is None, "the live migration to end")
        cloud.settle()
    finally:
        conf.clear_override("live_migration_bandwidth", "libvirt")
        host.driver._live.settings.trust_emulator = False
    home, status = (source, "cancelled") if ends == "aborted" else (target, "completed")
    assert (cloud.show(server).compute_host, cloud.migration(server).status) == (home, status)
    there = ticks(cloud, server, home)
    assert there[0] == identity and there[1] >= number
    for host in HOSTS:
        assert driver(cloud, host).presence(server.id) is (Presence.RUNNING if host == home else Presence.ABSENT)
        assert driver(cloud, host).inspect(server.id).has_disks is (host == home)
    assert cloud.audit().is_clean
