"""What can't be asked for is refused: the property is named, the code is the Compute API's own, and nothing has begun."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway.model.drains import How
from causeway.store.api import drains as store

from .drains_cloud import CLOUD as CLOUD
from .drains_cloud import DrainsCloud

ONE, THERE = "cell1-host1", "cell2-host1"
MISSING = "5e7e0000-0000-4000-8000-00000000dead"
PATH = "/os-causeway/drains"
STATES = ("planned", "running", "paused", "cancelling", "cancelled", "rolling_back", "rolled_back", "done")
# Action -> states that allow it.
ALLOWED = {
    "start": {"planned"},
    "pause": {"running"},
    "resume": {"paused"},
    "cancel": {"planned", "running", "paused"},
    "rollback": {"running", "paused", "cancelling", "cancelled", "done"},
}


def asked(cloud: DrainsCloud, path: str = "", method: str = "POST", **drain: Any) -> Any:
    wanted = {"drain": {"name": "empty", "scope": {"cells": ["cell1"]}, **drain}}
    return cloud.admin.compute.request(PATH + path, method, json=wanted, microversion="2.1", raise_exc=False)


def refusal(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    ((_kind, error),) = answer.json().items()
    assert error["code"] == status
    return str(error["message"])


@pytest.fixture
def nothing_begins(cloud: DrainsCloud) -> Iterator[None]:
    before = store.search(cloud.parts.api_database)
    yield
    assert store.search(cloud.parts.api_database) == before
    assert cloud.closed() == {}


WINDOW = {"days": [0], "start": "22:00", "end": "06:00"}
BAD = [
    ({"scope": {"cells": ["cell9"]}}, "scope.cells: There is no cell cell9."),
    ({"scope": {"hosts": ["nowhere"]}}, "scope.hosts: There is no host nowhere."),
    ({"scope": {"aggregates": ["nothing"]}}, "scope.aggregates: There is no aggregate nothing."),
    ({"scope": {"zones": ["nothing"]}}, "scope.zones: There is no availability zone nothing."),
    ({"scope": {"servers": [MISSING]}}, f"scope.servers: There is no server {MISSING}."),
    # Of what is in a list, the Compute API names the place alone.
    ({"scope": {"servers": ["one"]}}, "'one' is not a 'uuid'"),
    ({"scope": {}}, "scope"),
    ({"scope": {"cells": []}}, "scope: It is empty"),
    ({"scope": {"racks": ["1"]}}, "racks"),
    ({"targets": {"cells": ["cell9"]}}, "targets.cells: There is no cell cell9."),
    ({"targets": {"hosts": ["nowhere"]}}, "targets.hosts: There is no host nowhere."),
    ({"targets": {"aggregates": ["nothing"]}}, "targets.aggregates: There is no aggregate nothing."),
    ({"targets": {"cells": ["cell1"]}}, "targets: All of them are in the scope"),
    ({"targets": {"hosts": [ONE]}}, "targets: All of them are in the scope"),
    ({"scope": {"cells": ["cell1", "cell2"]}}, "targets: There is no host outside of the scope"),
    ({"flavors": {"gen1.small": "gen9"}}, "flavors: There is no flavor gen9."),
    ({"flavors": {"gen0": "gen2.small"}}, "flavors: There is no flavor gen0"),
    ({"flavors": {"gen1.small": "gen2.small"}, "how": "live"}, "flavors: A flavor can't be changed by a live move"),
    ({"how": "teleport"}, "how"),
    ({"windows": [WINDOW | {"zone": "Nowhere/Land"}]}, "windows: There is no time zone Nowhere/Land."),
    ({"windows": [WINDOW | {"zone": "../../etc/passwd"}]}, "windows: There is no time zone"),
    # A folder of time zones.
    ({"windows": [WINDOW | {"zone": "Europe"}]}, "windows: There is no time zone Europe."),
    ({"windows": [WINDOW | {"days": [9]}]}, "9 is greater than the maximum of 6"),
    ({"windows": [WINDOW | {"days": []}]}, "days"),
    ({"windows": [WINDOW | {"start": "25:00"}]}, "start"),
    ({"windows": [{"days": [0], "start": "22:00"}]}, "end"),
    ({"limits": {"total": -1}}, "total"),
    ({"limits": {"per_source_host": 0}}, "per_source_host"),
    ({"limits": {"per_cell": 3}}, "per_cell"),
    ({"retries": -1}, "retries"),
    ({"stop_after": -1}, "stop_after"),
    ({"afterwards": "confirm_later"}, "confirm_after"),
    ({"confirm_after": 3}, "confirm_after"),
    ({"afterwards": "confirm_later", "confirm_after": -1}, "confirm_after"),
    ({"deadline": "2001-01-01T00:00:00Z"}, "deadline: 2001-01-01T00:00:00+00:00 is over."),
    ({"deadline": "march"}, "deadline"),
    ({"first": "nicest"}, "first"),
    ({"name": ""}, "name"),
]


@pytest.mark.usefixtures("nothing_begins")
@pytest.mark.parametrize("path", ["/plan", ""])
@pytest.mark.parametrize(("drain", "said"), BAD, ids=[said for _drain, said in BAD])
def test_what_is_wrong_is_named(cloud: DrainsCloud, drain: dict[str, Any], said: str, path: str) -> None:
    assert said in refusal(asked(cloud, path, **drain), 400)


def test_a_server_of_another_drain_is_refused(cloud: DrainsCloud) -> None:
    server = cloud.on(ONE)
    first = asked(cloud, scope={"servers": [server.id]}).json()["drain"]["id"]
    said = refusal(asked(cloud), 409)
    assert said == f"Server {server.id} belongs to drain {first}, which has not ended."
    assert [drain.id for drain in store.search(cloud.parts.api_database)] == [first]
    # When that has ended, it is free.
    cloud.act(first, "cancel")
    assert asked(cloud).status_code == 201


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("action", list(ALLOWED))
def test_what_a_state_does_not_allow(cloud: DrainsCloud, action: str, state: str) -> None:
    if state in ALLOWED[action]:
        return
    drain = cloud.drain({})
    api = cloud.parts.api_database

    def become(state: str) -> None:
        # Nobody looks at it: somebody else has it.
        values = {"state": state, "owner": "somebody", "lease_until": None}
        with api.write() as connection:
            connection.execute(store.DRAINS.update().where(store.DRAINS.c.id == drain).values(values))

    become(state)
    said = refusal(cloud.admin.compute.post(f"{PATH}/{drain}/action", json={action: None}, microversion="2.1"), 409)
    assert drain in said and f" is {state}: " in said
    assert store.get(api, drain).state == state
    become("cancelled")


def test_actions_that_there_are_not_or_that_are_given_too_much(cloud: DrainsCloud) -> None:
    drain = cloud.drain({})
    path = f"{PATH}/{drain}/action"
    for body in (
        {"explode": None},
        {"start": {"now": True}},
        {"cancel": {"undo": "maybe"}},
        {},
        {"start": None, "pause": None},
    ):
        refusal(cloud.admin.compute.post(path, json=body, microversion="2.1"), 400)
    assert store.get(cloud.parts.api_database, drain).state == "planned"


@pytest.mark.parametrize("of", ["drains", "servers"])
def test_unknown_markers_are_refused(cloud: DrainsCloud, of: str) -> None:
    server = cloud.on(ONE)
    drain = cloud.drain({server.id: (THERE, How.WARM)})
    path = PATH if of == "drains" else f"{PATH}/{drain}/servers"
    get = cloud.admin.compute.get
    assert refusal(get(f"{path}?marker={MISSING}"), 400) == f"Marker {MISSING} could not be found."
    assert "'nobody' is not a 'uuid'" in refusal(get(f"{path}?marker=nobody"), 400)
    assert "'lost' is not one of" in refusal(get(f"{path}?state=lost"), 400)
    assert "Value: -1." in refusal(get(f"{path}?limit=-1"), 400)
    known = drain if of == "drains" else server.id
    assert get(f"{path}?marker={known}").status_code == 200


@pytest.mark.parametrize("drain", [MISSING, "no-uuid"])
def test_a_drain_that_there_is_not(cloud: DrainsCloud, drain: str) -> None:
    compute, path = cloud.admin.compute, f"{PATH}/{drain}"
    for answer in (
        compute.get(path),
        compute.get(f"{path}/servers"),
        compute.post(f"{path}/action", json={"start": None}),
        compute.put(path, json={"drain": {"limits": {"total": 1}}}),
        compute.delete(path),
    ):
        assert refusal(answer, 404) == f"Drain {drain} could not be found."


def test_bad_limits_of_a_running_drain_are_refused(cloud: DrainsCloud) -> None:
    drain = cloud.drain({})
    put = cloud.admin.compute.put
    for limits in ({"total": -1}, {"total": "many"}, {"totals": 3}):
        refusal(put(f"{PATH}/{drain}", json={"drain": {"limits": limits}}, microversion="2.1"), 400)
    assert store.get(cloud.parts.api_database, drain).request.limits.total != -1


def test_members_may_do_nothing_with_drains(cloud: DrainsCloud) -> None:
    drain = cloud.drain({})
    compute, path = cloud.member.compute, f"{PATH}/{drain}"
    for answer in (
        compute.get(PATH),
        compute.get(path),
        compute.get(f"{path}/servers"),
        compute.post(f"{path}/action", json={"start": None}),
        compute.put(path, json={"drain": {"limits": {"total": 1}}}),
        compute.delete(path),
    ):
        assert "causeway:drains:" in refusal(answer, 403)
    assert store.get(cloud.parts.api_database, drain).state == "planned"
