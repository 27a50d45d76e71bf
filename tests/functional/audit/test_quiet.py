"""The audit says nothing of clouds in which all is well, at whatever moment it looks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from causeway.clients import session
from causeway.rpc.transport import Outgoing, Verdict
from tests.functional.servers.audited_cloud import AuditedCloud


@contextmanager
def audited_at_every_call(cloud: AuditedCloud) -> Iterator[list[str]]:
    """Audits before every RPC and before and after every call of a service; whoever calls waits meanwhile.

    Yields what disagreed, each with the call at which it did.
    """
    found: list[str] = []
    looks: list[str] = []
    auditing = threading.Lock()

    def audit(moment: str) -> None:
        # The audit calls services as well, and so does the work of others while it looks.
        if not auditing.acquire(blocking=False):
            return
        try:
            report = cloud.audit()
            looks.append(moment)
            found.extend(f"{moment}: {each.kind} {each.resource}: {each.message}" for each in report.disagreements)
            found.extend(f"{moment}: {each}" for each in report.unreached)
        finally:
            auditing.release()

    def on_send(message: Outgoing) -> Verdict:
        if message.method not in ("list_host", "report_host"):
            audit(f"before {message.method}")
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = on_send
    session.calls.before = lambda key: audit(f"before {key}")
    session.calls.after = lambda key: audit(f"after {key}")
    try:
        yield found
    finally:
        session.calls.before = session.calls.after = None
        cloud.parts.around.transports.on_send = None
    assert len(looks) > 4, "there were calls to look at"


def test_an_empty_cloud_is_clean(cloud: AuditedCloud) -> None:
    report = cloud.audit()
    assert report.is_clean
    assert report.counts["hosts"] == 4


def test_every_moment_of_a_servers_life_is_clean(cloud: AuditedCloud) -> None:
    server = cloud.boot()
    assert cloud.audit().is_clean
    cloud.resized(server)
    assert cloud.audit().is_clean, "while it waits for confirm or revert"
    cloud.reverted(server)
    assert cloud.audit().is_clean
    cloud.resized(server)
    cloud.confirmed(server)
    assert cloud.audit().is_clean
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    assert cloud.audit().is_clean
    cloud.member.compute.delete_server(server.id)
    cloud.member.compute.wait_for_delete(server)
    assert cloud.audit().is_clean


def test_a_build_is_clean_however_long_it_looks_for_a_host(cloud: AuditedCloud) -> None:
    with audited_at_every_call(cloud) as disagreed:
        cloud.boot()
    assert disagreed == []


def test_a_failed_build_is_clean(cloud: AuditedCloud) -> None:
    cloud.option("vif_plugging_timeout", 1)
    cloud.parts.devcloud.unpluggable_hosts = {"cell1-host1", "cell1-host2"}
    server = cloud.member.compute.create_server(
        name="s", flavor_id="gen1.small", image_id=cloud.image_id, networks=[{"uuid": cloud.network_id}]
    )
    cloud.wait(server, "ERROR")
    assert cloud.audit().disagreements == []


def _with_volume(cloud: AuditedCloud) -> Any:
    server = cloud.boot()
    cloud.attach(server, cloud.volume())
    return server


BOOTS: dict[str, Callable[[AuditedCloud], Any]] = {
    "image": lambda cloud: cloud.boot(),
    "volume": lambda cloud: cloud.boot_from_volume(),
    "image and volume": _with_volume,
    "same cell": lambda cloud: cloud.boot(flavor="any.small"),
}


@pytest.mark.parametrize("boot", BOOTS)
@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_every_call_of_a_move_finds_a_clean_cloud(cloud: AuditedCloud, boot: str, end: str) -> None:
    server = BOOTS[boot](cloud)
    with audited_at_every_call(cloud) as disagreed:
        cloud.resized(server, "any.medium" if boot == "same cell" else "gen2.small")
        if end == "confirm":
            cloud.confirmed(server)
        else:
            cloud.reverted(server)
    assert disagreed == []
    assert cloud.audit().is_clean


@pytest.mark.long
def test_every_call_of_a_failing_move_finds_a_clean_cloud(cloud: AuditedCloud) -> None:
    server = _with_volume(cloud)
    cloud.option("vif_plugging_timeout", 1)
    cloud.parts.devcloud.unpluggable_hosts = {"cell2-host1", "cell2-host2"}
    with audited_at_every_call(cloud) as disagreed:
        cloud.member.compute.resize_server(server.id, "gen2.small")
        cloud.failed(server)
    assert disagreed == []
    cloud.settle()
    assert cloud.audit().is_clean


def test_a_server_that_is_deleted_while_it_waits_leaves_a_clean_cloud(cloud: AuditedCloud) -> None:
    server = _with_volume(cloud)
    cloud.resized(server)
    with audited_at_every_call(cloud) as disagreed:
        cloud.member.compute.delete_server(server.id)
        cloud.member.compute.wait_for_delete(server)
    assert disagreed == []
    assert cloud.audit().is_clean


@pytest.mark.long
def test_audits_while_many_servers_come_move_and_go_find_a_clean_cloud(cloud: AuditedCloud) -> None:
    def live(number: int) -> None:
        server = _with_volume(cloud) if number % 2 else cloud.boot(f"server-{number}")
        cloud.resized(server)
        if number % 3:
            cloud.member.compute.confirm_server_resize(server.id)
        else:
            cloud.member.compute.revert_server_resize(server.id)
        cloud.wait(server, "ACTIVE")
        cloud.member.compute.delete_server(server.id)
        cloud.member.compute.wait_for_delete(server)

    found = []
    with ThreadPoolExecutor(6, thread_name_prefix="users") as users:
        lives = [users.submit(live, number) for number in range(12)]
        while not all(life.done() for life in lives):
            found += cloud.audit().disagreements
    for life in lives:
        life.result()
    assert found == []
    assert cloud.audit().is_clean
