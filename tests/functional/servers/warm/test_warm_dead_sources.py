"""The source dies after the disks of its running guest were copied: the copies stay until they can't be the last ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from causeway.compute.handover.verify import VerifyEndpoint
from causeway.conductor.upkeep import cleaning
from causeway.rpc.transport import Verdict
from causeway.store.cell import instances
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.broken_hosts import disks_of, start, stop
from tests.functional.servers.dead_hosts import (
    CLOUD,
    FLAVORS,
    HAND_OVER,
    REACHES,
    cleaned,
    come_back,
    dies_when,
    left_on,
    runs_on,
)
from tests.functional.servers.moves_cloud import until

__all__ = ["CLOUD"]

KIND = AuditedCloud
pytestmark = pytest.mark.embedded("stops compute services and starts them again")


def copied(cloud: AuditedCloud, dead: Callable[..., None], reach: str) -> tuple[Any, str, str]:
    """A server whose move was rolled back because its source is dead; the source, and the target, which has copies."""
    server = cloud.boot(flavor=FLAVORS[reach][0])
    source = cloud.show(server).compute_host
    cloud.driver(source).guest_write(server.id, "precious")
    dies_when(cloud, dead, HAND_OVER, Verdict.LOSE_REQUEST, fenced=True)
    cloud.member.compute.resize_server(server.id, FLAVORS[reach][1])
    until(lambda: cloud.show(server).status, lambda status: status == "ERROR", "the server to be in ERROR")
    cloud.settle()
    (move,) = cloud.moves(server)
    target = move.data["selection"]["host"]
    assert transfers(cloud, server) == {(source, "rounds"), (target, "copies")}
    return server, source, target


def transfers(cloud: AuditedCloud, server: Any) -> set[tuple[str, str]]:
    """(host, kind) of what is kept of copies of the server's disks."""
    return {
        (path.parts[-3], path.parts[-2])
        for kind in ("rounds", "copies")
        for path in cloud.parts.state.path.glob(f"hosts/*/{kind}/*{server.id}*")
    }


def look(cloud: AuditedCloud) -> None:
    """What conductors do from time to time."""
    cleaning.look(cloud.embedded.conductor._services)


@REACHES
def test_copies_go_when_the_source_is_back_and_has_its_disks(
    cloud: AuditedCloud, dead: Callable[..., None], reach: str
) -> None:
    server, source, target = copied(cloud, dead, reach)
    assert left_on(cloud, target) == ["discard_copies"]
    come_back(cloud, source)
    cleaned(cloud, source)
    cleaned(cloud, target)
    assert transfers(cloud, server) == set()
    cloud.member.compute.reboot_server(server.id, "HARD")
    until(lambda: cloud.show(server).status, lambda status: status == "ACTIVE", "the server to run again")
    assert "precious" in cloud.driver(source).guest_read(server.id)
    assert cloud.audit().is_clean


@REACHES
def test_copies_stay_while_the_source_is_dead(cloud: AuditedCloud, dead: Callable[..., None], reach: str) -> None:
    server, source, target = copied(cloud, dead, reach)
    look(cloud)
    report = cloud.audit(fix=True)
    (found,) = [each for each in report.disagreements if each.resource.endswith(f"on {target}")]
    assert (found.kind, found.fix) == ("file.orphaned", None)
    assert source in str(found.left)
    assert (target, "copies") in transfers(cloud, server)
    assert left_on(cloud, target) == ["discard_copies"]


def test_copies_stay_if_the_source_comes_back_without_its_disks(cloud: AuditedCloud, dead: Callable[..., None]) -> None:
    server, source, target = copied(cloud, dead, "cross")
    shutil.rmtree(disks_of(cloud.parts.state.host(source), server.id))
    come_back(cloud, source)
    look(cloud)
    report = cloud.audit(fix=True)
    assert ("file.orphaned", server.id) in {(each.kind, each.server) for each in report.disagreements}
    assert (target, "copies") in transfers(cloud, server)


def test_a_target_that_starts_waits_for_no_other_host(
    cloud: AuditedCloud, dead: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, source, target = copied(cloud, dead, "cross")
    come_back(cloud, source)
    with monkeypatch.context() as patched:
        patched.setattr(VerifyEndpoint, "verify_server", lambda *_, **__: pytest.fail("another host is asked"))
        stop(cloud.embedded, target)
        start(cloud.embedded, target)
        assert left_on(cloud, target) == ["discard_copies"]
    cleaned(cloud, target)
    assert transfers(cloud, server) == set()


@REACHES
def test_copies_go_with_their_server(cloud: AuditedCloud, dead: Callable[..., None], reach: str) -> None:
    server, source, target = copied(cloud, dead, reach)
    cloud.clean()
    cloud.settle()
    cleaned(cloud, target)
    assert transfers(cloud, server) == {(source, "rounds")}
    come_back(cloud, source)
    cleaned(cloud, source)
    assert transfers(cloud, server) == set()
    assert cloud.hosts_of(server) == {}


def test_a_source_that_was_only_cut_off_stops_counting_changes(cloud: AuditedCloud, dead: Callable[..., None]) -> None:
    server, source, target = copied(cloud, dead, "cross")
    record = instances.get(cloud.cell(source[:5]), server.id)
    (path,) = cloud.parts.state.path.glob(f"hosts/{source}/rounds/*.{server.id}/round.json")
    number = json.loads(path.read_text())["number"]
    assert cloud.driver(source).has_round(record, number)
    runs_on(cloud, source, server)
    come_back(cloud, source)
    cleaned(cloud, source)
    cleaned(cloud, target)
    assert transfers(cloud, server) == set()
    assert not cloud.driver(source).has_round(record, number)
