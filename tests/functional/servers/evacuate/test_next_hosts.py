"""A host that fails to make the guest of an evacuated or unshelved server is followed by the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.model.sagas import SagaState
from causeway.store.api import journal
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import until

KIND = AuditedCloud
CLOUD: dict[str, Any] = {"cells": 1, "hosts_per_cell": 4}
HOSTS = [f"cell1-host{number}" for number in range(1, 5)]
KINDS = pytest.mark.parametrize("kind", ["evacuate", "unshelve"])


@pytest.fixture
def server(cloud: AuditedCloud, dead: Callable[..., None], kind: str) -> Any:
    """A server with a volume that has to come up on another host."""
    made = cloud.boot()
    cloud.attach(made, cloud.volume())
    if kind == "evacuate":
        dead(cloud.show(made).compute_host)
    else:
        cloud.member.compute.shelve_server(made.id)
        cloud.wait(made, "SHELVED_OFFLOADED")
    cloud.without_patience()
    return made


def request(cloud: AuditedCloud, server: Any, kind: str, **where: Any) -> None:
    body = {kind: where or ({} if kind == "evacuate" else None)}
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json=body, microversion="2.91")
    assert answer.status_code in (200, 202), answer.text


def operations(cloud: AuditedCloud, server: Any, kind: str) -> list[Any]:
    """Those of this kind, the oldest first, when the last has ended."""

    def found() -> list[Any]:
        return [move for move in journal.of_server(cloud.parts.api_database, server.id) if move.recipe == kind]

    ended = {SagaState.DONE, SagaState.FAILED}
    return until(found, lambda moves: bool(moves) and all(move.state in ended for move in moves), "operations to end")


def failed_hosts(cloud: AuditedCloud, server: Any, kind: str) -> list[str]:
    """The hosts that the last operation knows to have failed."""
    return list(operations(cloud, server, kind)[-1].data["failed_hosts"])


@KINDS
def test_the_next_host_makes_the_guest(cloud: AuditedCloud, server: Any, kind: str) -> None:
    cloud.break_driver(HOSTS, "spawn", times=1)
    request(cloud, server, kind)
    shown = cloud.wait(server, "ACTIVE")
    failed = failed_hosts(cloud, server, kind)
    assert len(failed) == 1 and shown.compute_host not in failed
    assert [one["status"] for one in cloud.attachments(server)] == ["attached"]
    assert [move.state for move in operations(cloud, server, kind)] == [SagaState.FAILED, SagaState.DONE]


@KINDS
def test_if_all_fail_the_fault_names_them(cloud: AuditedCloud, server: Any, kind: str) -> None:
    """Three hosts are tried: as many as [scheduler] max_attempts allows."""
    cloud.break_driver(HOSTS, "spawn")
    request(cloud, server, kind)
    tried = operations(cloud, server, kind)
    assert [move.state for move in tried] == [SagaState.FAILED] * 3
    shown = until(lambda: cloud.show(server), lambda found: found.task_state is None, "the server to rest")
    assert shown.status == {"evacuate": "ERROR", "unshelve": "SHELVED_OFFLOADED"}[kind]
    assert "The hypervisor broke in spawn" in cloud.faults(server)[-1].message
    cloud.heal()


@KINDS
def test_a_host_that_the_user_named_is_the_only_one(cloud: AuditedCloud, server: Any, kind: str) -> None:
    cloud.break_driver(HOSTS, "spawn")
    named = next(host for host in HOSTS if host != cloud.show(server).compute_host)
    request(cloud, server, kind, host=named)
    assert [move.state for move in operations(cloud, server, kind)] == [SagaState.FAILED]
    cloud.heal()
