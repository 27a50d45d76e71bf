"""Reports of live migrations during which something around fails, from people who run OpenStack.

Numbers are bugs on Launchpad; cubecos#N is an issue of bigstack-oss/cubecos on GitHub. See docs/known-bugs.md, section 8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import until

from .known_bugs_cloud import ALL_HOSTS, KnownBugsCloud

Fails = Callable[[KnownBugsCloud], Any]


def migrated_live(cloud: KnownBugsCloud, server: Any) -> Any:
    """The server when its live migration has ended, one way or the other."""
    body = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
    answer = cloud.act(server, body, who=cloud.admin)
    assert answer.status_code == 202, answer.text
    # Not by the API: the identity service may be what fails.
    cloud.settle()
    cloud.heal()
    return cloud.wait(server, "ACTIVE")


def with_volume(cloud: KnownBugsCloud) -> Any:
    server = cloud.boot()
    cloud.attach(server, cloud.volume())
    return server


def the_source_does_not_answer(cloud: KnownBugsCloud) -> None:
    cloud.lose("check_can_live_migrate_source", times=9)


def no_target_answers(cloud: KnownBugsCloud) -> None:
    cloud.lose("check_can_live_migrate_destination", times=9)


def every_target_fails(cloud: KnownBugsCloud) -> None:
    cloud.break_driver(list(ALL_HOSTS), "check_live_target")


def no_volume_is_reserved(cloud: KnownBugsCloud) -> None:
    cloud.fail("status", "/attachments$", service="volume", method="POST", status=413)


def no_port_is_bound(cloud: KnownBugsCloud) -> None:
    cloud.fail("status", "/bindings$", service="network", method="POST", status=409)


@pytest.mark.parametrize(
    "fails",
    [the_source_does_not_answer, no_target_answers, every_target_fails, no_volume_is_reserved, no_port_is_bound],
    ids=lambda act: act.__name__,
)
def test_a_check_that_fails_leaves_the_server_as_it_was(cloud: KnownBugsCloud, fails: Fails) -> None:
    """2044235, 1889108, 1899835: ACTIVE without a task, its volume connected once; and then it can be migrated."""
    cloud.needs_devcloud("services around refuse what they are asked for")
    server = with_volume(cloud)
    before = cloud.reality(server)
    cloud.without_patience()
    fails(cloud)
    migrated_live(cloud, server)
    assert cloud.migration(server).status in ("error", "failed")
    assert cloud.reality(server) == before
    assert migrated_live(cloud, server).compute_host != before["shown"][3]


def the_binding_can_not_be_activated(cloud: KnownBugsCloud) -> None:
    cloud.fail("status", "/activate", service="network", method="PUT", status=503, times=4)


def the_source_does_not_hear_that_it_is_over(cloud: KnownBugsCloud) -> None:
    cloud.lose("post_live_migration_at_source", times=2)


def the_sources_disks_can_not_be_deleted(cloud: KnownBugsCloud) -> None:
    cloud.break_driver(list(ALL_HOSTS), "destroy", times=1)


def the_sources_attachment_can_not_be_deleted(cloud: KnownBugsCloud) -> None:
    cloud.fail("status", "/attachments/", service="volume", method="DELETE", status=500, times=2)


def identity_fails(cloud: KnownBugsCloud) -> None:
    def fail() -> None:
        cloud.fail("status", "/auth/tokens", service="identity", status=500, times=20)

    cloud.at("post_live_migration_at_destination", fail)


@pytest.mark.parametrize(
    "fails",
    [
        the_binding_can_not_be_activated,
        the_source_does_not_hear_that_it_is_over,
        the_sources_disks_can_not_be_deleted,
        the_sources_attachment_can_not_be_deleted,
        identity_fails,
    ],
    ids=lambda act: act.__name__,
)
def test_what_fails_behind_the_hand_over_is_made_good(cloud: KnownBugsCloud, fails: Fails) -> None:
    """2143972, 1628606, cubecos#1440: the guest runs at its target, so the server, its port and its volume end there."""
    cloud.needs_devcloud("services around fail for a while")
    server = with_volume(cloud)
    home = cloud.show(server).compute_host
    fails(cloud)
    there = migrated_live(cloud, server).compute_host
    assert there != home and cloud.migration(server).status == "completed"
    assert cloud.hosts_of(server) == {there: "guest"}
    assert [(host, bound) for _status, host, bound in cloud.ports(server).values()] == [(there, {there: "ACTIVE"})]
    assert [each["status"] for each in cloud.attachments(server)] == ["attached"]
    assert list(cloud.allocations(server.id)) == [there]
    until(lambda: cloud.audit().disagreements, lambda found: found == [], "everything to agree")
