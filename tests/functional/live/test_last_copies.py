"""A source of a live migration destroys what it has only when the guest is at the target, and not here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.virt.driver import GuestFacts
from causeway.virt.live_guest import Presence
from tests.functional.servers.moves_cloud import until
from tests.functional.servers.operations.test_watched_operations import operations

from .live_cloud import LiveCloud

CLOUD: dict[str, Any] = {
    "overrides": {
        "moves": {"attempts": 3, "lease": 1.5, "stuck_retry_interval": 0.5},
        "fault_injection": {"enabled": True},
    }
}
pytestmark = pytest.mark.embedded("looks into hosts, and breaks them")


def says(cloud: LiveCloud, server: Any, words: str) -> None:
    """The operation waits, and says why."""
    until(lambda: operations(cloud, server), lambda found: found and words in str(found[0]["error"]), words)


@pytest.mark.parametrize("shown", [Presence.RUNNING, Presence.INCOMING])
def test_a_guest_that_runs_at_the_source_is_not_destroyed(
    cloud: LiveCloud, at_point: Callable[..., None], monkeypatch: pytest.MonkeyPatch, shown: Presence
) -> None:
    """Somebody started it there when it had gone, or it is coming back."""
    server = cloud.boot()
    source = cloud.host_of(server)
    driver = cloud.driver(source)
    at_point(
        "live_migration.ReleaseSource.do.before", lambda: monkeypatch.setattr(driver, "presence", lambda _uuid: shown)
    )
    assert cloud.migrate_live(server).status_code == 202
    says(cloud, server, "has not left the source")
    assert driver.inspect(server.id).has_disks
    monkeypatch.undo()
    assert cloud.after(server).compute_host == cloud.other(source)
    cloud.check_left_nothing(server, cloud.other(source))


@pytest.mark.expects_errors("is stuck in do of ReleaseSource")
def test_the_source_keeps_its_disks_if_the_guest_is_not_at_the_target_any_more(
    cloud: LiveCloud, at_point: Callable[..., None]
) -> None:
    server = cloud.boot()
    source = cloud.host_of(server)
    target = cloud.driver(cloud.other(source))
    at_point("live_migration.ReleaseSource.do.before", lambda: target.destroy(server.id, [], [], destroy_disks=True))
    assert cloud.migrate_live(server).status_code == 202
    says(cloud, server, "is not whole at the target of its live migration")
    assert cloud.driver(source).inspect(server.id).has_disks
    # An operator has saved what there is to save.
    cloud.driver(source).destroy(server.id, [], [], destroy_disks=True)
    cloud.after(server)
    assert cloud.migration(server).status == "completed"


@pytest.mark.expects_errors("is stuck in do of ArriveAtTarget")
def test_a_guest_that_is_gone_has_not_arrived(
    cloud: LiveCloud, at_point: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = cloud.boot()
    source = cloud.host_of(server)
    target = cloud.driver(cloud.other(source))

    def gone() -> None:
        monkeypatch.setattr(target, "inspect", lambda _uuid: GuestFacts(server.id, None))

    at_point("live_migration.ArriveAtTarget.do.before", gone)
    assert cloud.migrate_live(server).status_code == 202
    says(cloud, server, "is not at the target of its live migration any more")
    assert cloud.driver(source).inspect(server.id).has_disks
    monkeypatch.undo()
    assert cloud.after(server).compute_host == cloud.other(source)
    cloud.check_left_nothing(server, cloud.other(source))
