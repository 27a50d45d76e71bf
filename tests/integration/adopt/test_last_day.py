"""The last day: Nova is frozen, all its hosts are taken, the cloud is Causeway's, and an adopted cell is drained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import openstack.exceptions
import pytest

from tests.functional.processes.own_process import until
from tests.integration.adopt import outside
from tests.integration.adopt.adopted_cloud import AdoptedCloud, adopted_cloud
from tests.integration.adopt.answers import await_status
from tests.integration.adopt.commands import causeway
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.population import Population

pytestmark = pytest.mark.timeout(1800)

PATIENCE = 900.0


@pytest.fixture(scope="module")
def taken(cloud: NovaCloud, population: Population) -> Iterator[AdoptedCloud]:  # noqa: ARG001
    """All hosts are ours; users are sent to Nova still."""
    with adopted_cloud(cloud, "last") as adopted:
        before = outside.guests(cloud)
        adopted.take(*cloud.nova.hosts)
        outside.check_same_runs(before, outside.guests(cloud))
        yield adopted
        adopted.finish("--undo")
        adopted.point_catalog(cloud.nova.url)


def test_a_frozen_nova_refuses_changes_and_shows_servers(cloud: NovaCloud, population: Population) -> None:
    """It reads the file while it runs."""
    uuid, nova_config = population.servers["active"], cloud.nova.config_of("nova")
    policy = nova_config.parent / "policy.d" / "freeze.yaml"
    policy.parent.mkdir(exist_ok=True)
    freeze = ("adopt", "freeze", f"--nova-config={nova_config}", f"--policy-file={policy}")
    frozen = causeway(*freeze, "--quiet=3", "--timeout=120")
    assert frozen.returncode == 0, frozen.stdout + frozen.stderr
    with closing(cloud.nova.connection()) as theirs:
        with pytest.raises(openstack.exceptions.ForbiddenException):
            theirs.compute.reboot_server(uuid, "SOFT")
        assert theirs.compute.get_server(uuid).status == "ACTIVE"
        assert causeway(*freeze, "--lift").returncode == 0
        theirs.compute.set_server_metadata(uuid, thawed="yes")


def test_what_remains_is_named_and_then_the_cloud_is_finished(cloud: NovaCloud, taken: AdoptedCloud) -> None:
    before = outside.guests(cloud)
    early = taken.finish("--json")
    assert early.returncode == 1, early.stdout + early.stderr
    left = json.loads(early.stdout)
    assert (left["hosts"], left["left_out"]) == ([], [])
    assert all(cloud.nova.url in endpoint for endpoint in left["endpoints"]) and left["endpoints"]
    taken.point_catalog(f"{taken.api_url}/v2.1")
    done = taken.finish("--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["audit"]["disagreements"] == []
    outside.check_same_runs(before, outside.guests(cloud))


def test_an_adopted_cell_is_drained_into_the_other(
    cloud: NovaCloud, population: Population, taken: AdoptedCloud
) -> None:
    uuid, compute = population.servers["active"], taken.admin.compute
    lines = outside.ticks(cloud, uuid)[-1].lines
    wanted = {
        "name": "adopted",
        "scope": {"cells": ["cell1"]},
        "flavors": {"gen1.small": "gen2.small"},
        "afterwards": "confirm",
    }
    made = compute.post("/os-causeway/drains", json={"drain": wanted}, microversion="2.1").json()
    assert "drain" in made, made
    path = f"/os-causeway/drains/{made['drain']['id']}"
    compute.post(f"{path}/action", json={"start": None}, microversion="2.1")

    def look() -> dict[str, Any]:
        found: dict[str, Any] = compute.get(path, microversion="2.1").json()["drain"]
        return found

    until(look, lambda drain: drain["state"] == "done", "the drain to end", PATIENCE)
    assert {cloud.nova.hosts[guest.host] for guest in outside.guests(cloud)} == {"cell2"}
    for name in ("active", "datavol", "stopped"):
        host = await_status(
            taken.admin, population.servers[name], "SHUTOFF" if name == "stopped" else "ACTIVE"
        ).compute_host
        assert cloud.nova.hosts[host] == "cell2", name
    outside.await_lines(cloud, uuid, lines)
