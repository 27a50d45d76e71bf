"""``openstack drain ...``: the real client, of drains that are in the database.

`api/operations/test_drain_commands` has every option.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterator

import pytest

from causeway.model.drains import Drain, DrainRequest, DrainServer, How, Scope
from causeway.store.api import drains as store
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.openstack_client import listed, openstack


@pytest.fixture
def drain(cloud: Cloud) -> Iterator[Drain]:
    """A planned one, of a host and a server that are not there."""
    made = Drain(id=str(uuids.uuid4()), request=DrainRequest("empty", Scope(hosts=["nowhere"])))
    server = DrainServer(drain_id=made.id, instance_uuid=str(uuids.uuid4()), name="web", how=How.COLD, bytes=3 << 30)
    store.create(cloud.parts.api_database, made, [server])
    yield made
    store.delete(cloud.parts.api_database, made.id)


def test_a_drain_and_its_servers_are_shown(cloud: Cloud, drain: Drain) -> None:
    answer = cloud.admin.compute.get(f"/os-causeway/drains/{drain.id}").json()["drain"]
    shown = listed(cloud, "drain", "show", "empty")
    assert shown == {name: value for name, value in answer.items() if name != "request"} | answer["request"]
    (found,) = [each for each in listed(cloud, "drain", "list") if each["ID"] == drain.id]
    assert (found["Name"], found["State"], found["Bytes Total"]) == ("empty", "planned", 3 << 30)
    (server,) = listed(cloud, "drain", "server", "list", "empty")
    (known,) = cloud.admin.compute.get(f"/os-causeway/drains/{drain.id}/servers").json()["servers"]
    assert (server["Server"], server["How"], server["Bytes"]) == (known["instance_uuid"], "cold", known["bytes"])
    table, _said = openstack(cloud, "drain", "server", "list", drain.id)
    assert "3.0 GiB" in table


def test_limits_of_a_drain_are_set_by_the_client(cloud: Cloud, drain: Drain) -> None:
    assert openstack(cloud, "drain", "set", drain.id, "--limit", "7", anew=True) == ("", "")
    assert store.get(cloud.parts.api_database, drain.id).request.limits.total == 7


def test_what_can_not_be_done_with_a_planned_one_is_refused(cloud: Cloud, drain: Drain) -> None:
    for command in ("pause", "resume", "rollback"):
        _written, said = openstack(cloud, "drain", command, drain.id, status=1)
        assert said.startswith(f"The cloud refused (409): Drain {drain.id} is planned"), command


def test_a_drain_is_cancelled_and_deleted(cloud: Cloud, drain: Drain) -> None:
    assert openstack(cloud, "drain", "cancel", "empty", "--undo") == ("", "")
    assert store.get(cloud.parts.api_database, drain.id).state == "cancelled"
    assert "only a planned one can be started" in openstack(cloud, "drain", "start", drain.id, status=1)[1]
    assert openstack(cloud, "drain", "delete", drain.id) == ("", "")
    assert "could not be found" in openstack(cloud, "drain", "show", drain.id, status=1)[1]


def test_what_can_not_be_planned_is_refused_and_nothing_is_kept(cloud: Cloud) -> None:
    for words in (("plan",), ("create", "of nothing")):
        _written, said = openstack(cloud, "drain", *words, "--cell", "no-cell-of-ours", status=1)
        assert said.startswith("The cloud refused (")
    assert "of nothing" not in openstack(cloud, "drain", "list")[0]
    _written, said = openstack(cloud, "drain", "plan", "--cell", "cell1", "--window", "sometimes", status=2)
    assert "argument --window: 'sometimes' is not" in said
