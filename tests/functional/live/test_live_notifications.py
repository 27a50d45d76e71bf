"""What consumers of versioned notifications hear of a live migration: Nova's events, in its order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.servers.notified import CONFIGURATION, heard_by

from .live_cloud import ONE_NETWORK, LiveCloud, until
from .test_near_live import elsewhere

CLOUD = {
    "config_files": [str(CONFIGURATION)],
    "overrides": {"libvirt": {"live_migration_monitor_interval": 0.0}, "simulated": ONE_NETWORK},
}
across_cells = pytest.mark.parametrize("across_cells", [False, True])


def booted(cloud: LiveCloud, *, across_cells: bool) -> tuple[Any, str, str]:
    """A server, its host, and where it is to go."""
    server = cloud.boot(flavor="any.small")
    source = cloud.host_of(server)
    return server, source, elsewhere(cloud, server) if across_cells else cloud.other(source)


class Consumer:
    """Hears what a billing system would hear."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def info(self, _context: Any, publisher_id: str, event_type: str, _payload: Any, _metadata: Any) -> None:
        if "live_migration" in event_type or "migrate_server" in event_type:
            self.heard.append((event_type.removeprefix("instance.live_migration_"), publisher_id.partition(":")[2]))

    error = info


@pytest.fixture(scope="module")
def consumer(module_cloud: LiveCloud) -> Iterator[Consumer]:
    consumer = Consumer()
    with heard_by(module_cloud.parts.conf, consumer):
        yield consumer


def heard(consumer: Consumer, *last: str) -> list[tuple[str, str]]:
    """All that was heard when each of the last events was: those of an order come from a thread of their own."""
    found = until(
        lambda: list(consumer.heard),
        lambda found: {event for event, _ in found}.issuperset(last),
        f"{', '.join(last)} to be notified",
    )
    consumer.heard.clear()
    return found


@across_cells
def test_a_migration_is_notified_from_start_to_end(cloud: LiveCloud, consumer: Consumer, *, across_cells: bool) -> None:
    server, source, target = booted(cloud, across_cells=across_cells)
    assert cloud.migrated(server, host=target).compute_host == target
    assert heard(consumer, "post.end") == [
        ("pre.start", target),
        ("pre.end", target),
        ("post.start", source),
        ("post_dest.start", target),
        ("post_dest.end", target),
        ("post.end", source),
    ]


@across_cells
def test_an_abort_is_notified_with_its_rollback(cloud: LiveCloud, consumer: Consumer, *, across_cells: bool) -> None:
    server, source, target = booted(cloud, across_cells=across_cells)
    cloud.busy(server)
    cloud.migrate_live(server, host=target)
    number = cloud.becomes(server, "running").id
    cloud.admin.compute.delete(f"/servers/{server.id}/migrations/{number}", microversion="2.96")
    cloud.after(server)
    found = heard(consumer, "rollback.end", "abort.start", "abort.end")
    rolled_back = [each for each in found if each[0].startswith("rollback")]
    assert found[:2] == [("pre.start", target), ("pre.end", target)]
    assert rolled_back == [
        ("rollback.start", source),
        ("rollback_dest.start", target),
        ("rollback_dest.end", target),
        ("rollback.end", source),
    ]
    assert ("abort.start", source) in found


def test_a_migration_without_a_host_is_notified_as_an_error(cloud: LiveCloud, consumer: Consumer) -> None:
    server = cloud.boot()
    consumer.heard.clear()
    cloud.break_driver(list(cloud.parts.computes), "check_live_target")
    cloud.migrated(server)
    assert heard(consumer, "compute_task.migrate_server.error") == [
        ("compute_task.migrate_server.error", cloud.parts.conductor._services.host)
    ]


def test_a_forced_completion_is_notified(cloud: LiveCloud, consumer: Consumer) -> None:
    server = cloud.boot()
    source = cloud.host_of(server)
    cloud.busy(server)
    cloud.migrate_live(server)
    number = cloud.becomes(server, "running").id
    cloud.job_runs(server)
    consumer.heard.clear()
    path = f"/servers/{server.id}/migrations/{number}/action"
    cloud.admin.compute.post(path, json={"force_complete": None}, microversion="2.96")
    cloud.after(server)
    found = heard(consumer, "post.end", "force_complete.start", "force_complete.end")
    assert ("force_complete.start", source) in found and ("force_complete.end", source) in found
