"""An evacuated server moves on, also to another cell, before its dead host returns: the host keeps nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from causeway import errors
from causeway.conductor.upkeep.evacuated import EvacuatedEndpoint
from causeway.context import admin_context
from causeway.store.database import Database
from tests.functional.live.live_cloud import ONE_NETWORK
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.broken_hosts import disks_of, lose_guest
from tests.functional.servers.dead_hosts import come_back, runs_on
from tests.functional.servers.moves_cloud import until

pytestmark = pytest.mark.embedded("reaches into drivers")

KIND = AuditedCloud
CLOUD: dict[str, Any] = {"overrides": {"simulated": ONE_NETWORK, "fault_injection": {"enabled": True}}}
STILL = pytest.mark.parametrize("still", ["off", "running"])


def evacuated(cloud: AuditedCloud, dead: Callable[..., None], flavor: str = "gen1.small") -> tuple[Any, str]:
    """A server that was evacuated, and its dead host."""
    server = cloud.boot(flavor=flavor)
    source = cloud.show(server).compute_host
    dead(source)
    evacuate(cloud, server)
    return server, source


def evacuate(cloud: AuditedCloud, server: Any) -> None:
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json={"evacuate": {}}, microversion="2.94")
    assert answer.status_code == 200, answer.text
    until(lambda: cloud.migration(server).status, lambda status: status == "done", "the evacuation")
    cloud.wait(server, "ACTIVE")
    cloud.settle()


def evacuation(cloud: AuditedCloud, server: Any) -> Any:
    """The oldest evacuation of a server."""
    return list(cloud.admin.compute.migrations(instance_uuid=server.id, migration_type="evacuation"))[-1]


def cleaned(cloud: AuditedCloud, server: Any) -> None:
    until(lambda: evacuation(cloud, server).status, lambda status: status == "completed", "the host to be cleaned")
    assert cloud.allocations(evacuation(cloud, server).uuid) == {}


@contextmanager
def back_uncleaned(cloud: AuditedCloud, host: str) -> Iterator[pytest.MonkeyPatch]:
    """A host that is back and could not be cleaned; the patch that is undone lets it be cleaned."""

    def fails(*_: object, **__: object) -> None:
        raise errors.DatabaseFailed("The API's database is unreachable.")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(EvacuatedEndpoint, "clean_evacuated", fails)
        come_back(cloud, host)
        yield patched


def look(cloud: AuditedCloud, host: str) -> None:
    """What a conductor does when the host returns, and later again."""
    EvacuatedEndpoint(cloud.embedded.conductor._services).clean_evacuated(admin_context(), host=host)


def resized(cloud: AuditedCloud, server: Any) -> str:
    """The host in the other cell to which the server was resized and confirmed."""
    cloud.resized(server)
    return str(cloud.confirmed(server).compute_host)


def migrated_live(cloud: AuditedCloud, server: Any) -> str:
    """The host in the other cell to which the server was live-migrated."""
    target = "cell2-host1" if cloud.show(server).compute_host.startswith("cell1") else "cell1-host1"
    wanted = {"os-migrateLive": {"host": target, "block_migration": "auto"}}
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json=wanted, microversion="2.96")
    assert answer.status_code == 202, answer.text
    until(lambda: cloud.show(server).compute_host, lambda host: host == target, "the live migration")
    cloud.settle()
    return target


@STILL
@pytest.mark.parametrize(("flavor", "move"), [("gen1.small", resized), ("any.small", migrated_live)])
def test_a_server_that_moved_to_another_cell_leaves_nothing_on_its_dead_host(
    cloud: AuditedCloud, dead: Callable[..., None], flavor: str, move: Callable[[AuditedCloud, Any], str], still: str
) -> None:
    server, source = evacuated(cloud, dead, flavor)
    target = move(cloud, server)
    assert target[:5] != source[:5]
    if still == "running":
        runs_on(cloud, source, server)
    come_back(cloud, source)
    cleaned(cloud, server)
    assert cloud.hosts_of(server) == {target: "guest"}
    assert cloud.driver(target).running_anywhere(server.id) == [target]
    assert cloud.audit().disagreements == []


def test_a_host_returns_while_a_move_to_another_cell_waits_for_its_user(
    cloud: AuditedCloud, dead: Callable[..., None]
) -> None:
    server, source = evacuated(cloud, dead)
    between = cloud.show(server).compute_host
    cloud.resized(server)
    come_back(cloud, source)
    cleaned(cloud, server)
    assert source not in cloud.hosts_of(server)
    assert cloud.reverted(server).compute_host == between
    assert cloud.hosts_of(server) == {between: "guest"}
    assert cloud.audit().disagreements == []


def test_the_old_disks_stay_while_the_host_in_the_other_cell_has_nothing(
    cloud: AuditedCloud, dead: Callable[..., None]
) -> None:
    server, source = evacuated(cloud, dead)
    lose_guest(cloud.driver(resized(cloud, server)), server.id)
    runs_on(cloud, source, server)
    come_back(cloud, source)
    look(cloud, source)
    assert cloud.hosts_of(server) == {source: "guest"}
    # It is stopped all the same, before anybody asks whether it runs elsewhere.
    assert cloud.driver(source).running_anywhere(server.id) == []
    assert evacuation(cloud, server).status == "done"
    cloud.clean()
    cloud.settle()
    look(cloud, source)
    assert cloud.hosts_of(server) == {}


def test_an_evacuation_whose_host_is_still_dead_is_no_disagreement(
    cloud: AuditedCloud, dead: Callable[..., None]
) -> None:
    server, _source = evacuated(cloud, dead)
    assert evacuation(cloud, server).status == "done"
    assert cloud.audit().disagreements == []


@STILL
def test_a_server_that_moved_and_was_deleted_leaves_nothing_on_its_dead_host(
    cloud: AuditedCloud, dead: Callable[..., None], still: str
) -> None:
    server, source = evacuated(cloud, dead)
    resized(cloud, server)
    cloud.clean()
    cloud.settle()
    if still == "running":
        runs_on(cloud, source, server)
    come_back(cloud, source)
    cleaned(cloud, server)
    assert cloud.hosts_of(server) == {}
    assert cloud.audit().disagreements == []


def test_disks_that_a_move_stashed_on_the_dead_host_go_too(cloud: AuditedCloud, dead: Callable[..., None]) -> None:
    server, source = evacuated(cloud, dead)
    cloud.driver(source).destroy(server.id, [], [], destroy_disks=False)
    cloud.driver(source).stash_disks(server.id)
    target = cloud.show(server).compute_host
    come_back(cloud, source)
    # The host reports no guest of another host's server, so only a look finds it.
    look(cloud, source)
    cleaned(cloud, server)
    assert cloud.hosts_of(server) == {target: "guest"}
    assert cloud.audit().disagreements == []


def test_an_evacuation_back_to_a_host_deletes_the_disks_that_were_stashed_there(
    cloud: AuditedCloud, dead: Callable[..., None]
) -> None:
    server, source = evacuated(cloud, dead)
    with back_uncleaned(cloud, source):
        disks_of(cloud.parts.state.host(source), server.id, stashed=True).mkdir()
        dead(cloud.show(server).compute_host)
        evacuate(cloud, server)
    assert cloud.show(server).compute_host == source
    assert cloud.hosts_of(server)[source] == "guest"


def test_nothing_is_deleted_while_the_other_cell_does_not_answer(
    cloud: AuditedCloud, dead: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, source = evacuated(cloud, dead)
    target = resized(cloud, server)
    runs_on(cloud, source, server)
    read = Database.read

    def refuse(database: Database) -> Any:
        if database.name == "cell2":
            raise errors.DatabaseFailed("The database of cell2 is unreachable.")
        return read(database)

    monkeypatch.setattr(Database, "read", refuse)
    come_back(cloud, source)
    look(cloud, source)
    monkeypatch.undo()
    assert cloud.hosts_of(server) == {source: "guest", target: "guest"}
    assert cloud.driver(target).running_anywhere(server.id) == [target]
    assert evacuation(cloud, server).status == "done"


def test_a_server_that_is_back_on_its_former_host_is_left_alone(cloud: AuditedCloud, dead: Callable[..., None]) -> None:
    """The host could not be cleaned when it returned; then the server was evacuated to it."""
    server, source = evacuated(cloud, dead)
    with back_uncleaned(cloud, source):
        between = cloud.show(server).compute_host
        dead(between)
        evacuate(cloud, server)
    assert cloud.show(server).compute_host == source
    look(cloud, source)
    assert evacuation(cloud, server).status == "completed"
    assert cloud.driver(source).running_anywhere(server.id) == [source]


@pytest.mark.parametrize("point", ["evacuate.RebuildGuest.do.after", "unshelve.StartGuest.do.after"])
def test_nothing_is_deleted_while_the_server_comes_back_to_its_former_host(
    cloud: AuditedCloud,
    dead: Callable[..., None],
    at_point: Callable[..., None],
    point: str,
) -> None:
    server, source = evacuated(cloud, dead)
    seen: list[list[str]] = []

    def look_meanwhile() -> None:
        patched.undo()
        look(cloud, source)
        seen.append(cloud.driver(source).running_anywhere(server.id))

    with back_uncleaned(cloud, source) as patched:
        at_point(point, look_meanwhile)
        if point.startswith("evacuate"):
            dead(cloud.show(server).compute_host)
            evacuate(cloud, server)
        else:
            cloud.member.compute.shelve_server(server.id)
            cloud.wait(server, "SHELVED_OFFLOADED")
            other = next(host for host in cloud.parts.computes if host.startswith("cell1") and host != source)
            dead(other)
            cloud.member.compute.unshelve_server(server.id)
            cloud.wait(server, "ACTIVE")
        cloud.settle()
    assert seen == [[source]]
    assert cloud.driver(source).running_anywhere(server.id) == [source]
    look(cloud, source)
    assert evacuation(cloud, server).status == "completed"
    assert cloud.driver(source).running_anywhere(server.id) == [source]
