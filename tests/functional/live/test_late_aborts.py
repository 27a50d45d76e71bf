"""An order to abort or force a live migration comes late: it concerns no other migration of the guest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from causeway import errors
from causeway.compute.handover.live_endpoint import LiveEndpoint
from causeway.compute.host.departures import Departures
from causeway.context import admin_context
from causeway.model.outcomes import OperationToken
from causeway.store.api import journal
from tests.functional.servers.dying_threads import SOON_NOTICED

from .live_cloud import LiveCloud

CLOUD = SOON_NOTICED
pytestmark = [
    pytest.mark.embedded("looks into hosts, and breaks them"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


def endpoint(cloud: LiveCloud, host: str) -> LiveEndpoint:
    return LiveEndpoint(cloud.parts.computes[host].host)


def token_of(cloud: LiveCloud, server: Any) -> OperationToken:
    """Of the server's latest migration."""
    uuid = cloud.migration(server).uuid
    operation = journal.of_migration(cloud.parts.api_database, uuid)[0]
    return OperationToken(operation.id, uuid, operation.epoch, "MigrateGuest")


def cancel(cloud: LiveCloud, server: Any) -> None:
    path = f"/servers/{server.id}/migrations/{cloud.migration(server).id}"
    assert cloud.admin.compute.delete(path, microversion="2.96").status_code == 202


@pytest.mark.parametrize("dies", [False, True])
def test_a_late_abort_is_not_for_the_migration_that_runs_now(
    cloud: LiveCloud, dies_at: Callable[[str], None], dies: bool
) -> None:
    """``dies``: the source died at the end of the first migration, so that it did not note how that ended."""
    server = cloud.boot()
    source = cloud.host_of(server)
    if dies:
        dies_at("compute.live_migration.after")
    cloud.migrated(server)
    late = token_of(cloud, server)
    assert cloud.migrated(server).compute_host == source
    cloud.busy(server)
    cloud.option("live_migration_monitor_interval", 0.0, "libvirt")
    cloud.migrate_live(server)
    cloud.job_runs(server)
    host = endpoint(cloud, source)
    host.live_migration_abort(admin_context(), token=late, instance_uuid=server.id)
    with pytest.raises(errors.ClaimRefused):
        host.live_migration_force_complete(admin_context(), token=late, instance_uuid=server.id)
    job = cloud.driver(source)._jobs[server.id]
    assert not job.aborted and not job.forced
    cancel(cloud, server)
    assert cloud.after(server).compute_host == source
    cloud.check_left_nothing(server, source)


def test_a_migration_is_aborted_though_its_host_has_answered_that_it_failed(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a host whose hypervisor said nothing for long, and continued."""
    server = cloud.boot()
    source = cloud.host_of(server)
    driver = cloud.driver(source)
    works = driver.live_migrate

    def silent(spec: Any, target: Any, options: Any, _progress: Any) -> None:
        threading.Thread(target=works, args=(spec, target, options, lambda _seen: None), daemon=True).start()
        raise errors.GuestFailed("The hypervisor has said nothing for long.")

    cloud.busy(server)
    monkeypatch.setattr(driver, "live_migrate", silent)
    assert cloud.migrate_live(server).status_code == 202
    cloud.job_runs(server)
    cancel(cloud, server)
    assert cloud.after(server).compute_host == source
    assert driver.live_progress(server.id) is None
    cloud.check_left_nothing(server, source)


def test_no_migration_begins_while_another_one_is_aborted(tmp_path: Any) -> None:
    """An abort returns when the hypervisor has no migration of the guest: the next one would never let it."""
    first, second, server = (f"{number}" * 8 + "-0000-4000-8000-000000000000" for number in "123")
    departures, seen = Departures(tmp_path / "departures"), []

    def begin() -> None:
        departures.begin(second, server)
        seen.append("begun")

    departures.begin(first, server)
    thread = threading.Thread(target=begin)
    with departures.of(first, server):
        thread.start()
        seen.append("aborted")
    thread.join()
    assert seen == ["aborted", "begun"]
    with pytest.raises(errors.ClaimRefused), departures.of(first, server):
        pass
    # What ends the first one, late, does not end the second.
    departures.end(first, server)
    with Departures(tmp_path / "departures").of(second, server) as is_known:
        assert is_known
    departures.end(second, server)
    with departures.of(first, server) as is_known:
        assert not is_known


@pytest.mark.expects_errors("is torn")
def test_a_departure_that_cannot_be_read_is_not_known(tmp_path: Any) -> None:
    departures, server = Departures(tmp_path), "server"
    (tmp_path / server).write_bytes(b"torn")
    with departures.of("any", server) as is_known:
        assert not is_known
