"""A nova-compute whose host has another owner does not serve it: its identity (compute_id) was renamed away.

Nova 34 then raises an error, but its process stays, because a thread of it does: whoever looks for processes finds it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.functional.processes.own_process import until
from tests.integration.adopt import nova, outside
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.owners import REFUSED, listens
from tests.integration.adopt.population import Population

pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Stopped:
    """A host whose nova-compute does not run; its guest ``uuid`` does. ``identity``: its file, ``renamed``: where it is put."""

    host: str
    uuid: str
    identity: Path
    renamed: Path


@pytest.fixture
def stopped(cloud: NovaCloud, population: Population) -> Iterator[Stopped]:
    uuid = population.servers["active"]
    host = outside.guest_of(cloud, uuid).host
    identity = cloud.nova.home(host) / "compute_id"
    stopped = Stopped(host, uuid, identity, identity.with_name("compute_id.not-nova"))
    cloud.nova.stop_compute(host)
    yield stopped
    if cloud.nova.runs_compute(host) and not identity.exists():
        cloud.nova.stop_compute(host)
    if stopped.renamed.exists():
        stopped.renamed.rename(identity)
    if not cloud.nova.runs_compute(host):
        cloud.nova.start_compute(host)


def records(cloud: NovaCloud, host: str) -> dict[str, Any]:
    """What a nova-compute of the host would write."""
    url = cloud.nova.databases[cloud.nova.hosts[host]]
    return {table: outside.rows(url, table, host=host) for table in ("instances", "services", "compute_nodes")}


def await_report(cloud: NovaCloud, host: str) -> None:
    """The next one that is written."""

    def reports() -> int:
        (row,) = [each for each in records(cloud, host)["services"] if each["binary"] == "nova-compute"]
        return int(row["report_count"])

    before = reports()
    until(reports, lambda now: now > before, f"a report of {host}", nova.PATIENCE)


def test_a_nova_compute_without_its_identity_does_not_serve_and_changes_nothing(
    cloud: NovaCloud, stopped: Stopped
) -> None:
    name, neighbour = f"nova-compute-{stopped.host}", cloud.nova.neighbour(stopped.host)
    guests, before, said_before = outside.guests(cloud), records(cloud, stopped.host), len(cloud.nova.log(name))
    stopped.identity.rename(stopped.renamed)

    cloud.nova.launch_compute(stopped.host)
    until(lambda: cloud.nova.log(name)[said_before:], lambda said: REFUSED in said, f"{name} to say no", nova.PATIENCE)
    assert "InvalidConfiguration" in cloud.nova.log(name)[said_before:]
    # So long that it would have reported, too.
    for _report in range(2):
        await_report(cloud, neighbour)
    assert not listens(cloud, stopped.host)
    assert listens(cloud, neighbour)
    assert not stopped.identity.exists()
    assert records(cloud, stopped.host) == before
    outside.check_undisturbed(cloud, guests, stopped.uuid)

    cloud.nova.stop_compute(stopped.host)
    stopped.renamed.rename(stopped.identity)
    cloud.nova.start_compute(stopped.host)
    assert listens(cloud, stopped.host)
    outside.check_undisturbed(cloud, guests, stopped.uuid)


def test_an_identity_beside_nova_conf_lets_a_nova_compute_start_as_well(cloud: NovaCloud, stopped: Stopped) -> None:
    beside = cloud.nova.config_of(f"compute-{stopped.host}").with_name("compute_id")
    shutil.copy(stopped.identity, beside)
    stopped.identity.rename(stopped.renamed)
    guests = outside.guests(cloud)
    try:
        cloud.nova.start_compute(stopped.host)
        outside.check_undisturbed(cloud, guests, stopped.uuid)
    finally:
        cloud.nova.stop_compute(stopped.host)
        beside.unlink()
