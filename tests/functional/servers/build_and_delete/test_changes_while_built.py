"""A server is changed while a conductor builds it: what was answered with 200 is in its record, whichever way the build ends.

A build reads its request early and writes the server into a cell later. Each test stops it between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.conductor.service import ConductorService
from causeway.model import operations
from causeway.store.api import journal, mappings
from causeway.store.cell import copies
from tests.functional.servers.dying_threads import THREADS_DIE
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.slow_conductors import SHORT_LEASES, Hold, proceed, take_over

CLOUD = SHORT_LEASES
pytestmark = [*THREADS_DIE, pytest.mark.usefixtures("other")]

VERSION = "2.104"
CHANGES = {
    "name": "renamed",
    "description": "changed while it was built",
    "hostname": "renamed.example",
    "accessIPv4": "192.0.2.7",
    "accessIPv6": "2001:db8::7",
    "OS-DCF:diskConfig": "AUTO",
}
SHOWN = {"OS-EXT-SRV-ATTR:hostname": "hostname"}
# From when the build has read its request until it has ended.
POINTS = [
    "rpc.scheduler.select_destinations.request",
    "rpc.scheduler.select_destinations.reply",
    "build.ChooseHost.do.after",
    "build.PlaceInCell.do.before",
    "build.PlaceInCell.do.after",
    "rpc.compute.build_guest.request",
    "build.EndBuild.do.before",
]
# Until here it has no cell.
WITHOUT_CELL = POINTS[:4]


def ask_for(cloud: Cloud, **fields: Any) -> Any:
    given = {"image_id": cloud.image_id, "networks": [{"uuid": cloud.network_id}], **fields}
    return cloud.member.compute.create_server(**{"name": "server", "flavor_id": "any.small", **given})


def put(cloud: Cloud, server: Any, **changes: Any) -> None:
    answer = cloud.member.compute.put(f"/servers/{server.id}", json={"server": changes}, microversion=VERSION)
    assert answer.status_code == 200, answer.text


def fields_of(cloud: Cloud, server: Any) -> dict[str, Any]:
    """What PUT can change, as the API shows it."""
    answer = cloud.admin.compute.get(f"/servers/{server.id}", microversion=VERSION).json()["server"]
    return {SHOWN.get(name, name): value for name, value in answer.items() if SHOWN.get(name, name) in CHANGES}


def before_the_mapping(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], times: int = 1) -> None:
    """Does something each time the server was written into its cell, before it is mapped to that."""
    done: list[None] = []

    def acting(write: Callable[..., None]) -> Callable[..., None]:
        def write_and_act(*given: Any, **options: Any) -> None:
            write(*given, **options)
            if len(done) < times:
                done.append(None)
                act()

        return write_and_act

    for name in ("insert", "write"):
        monkeypatch.setattr(copies, name, acting(getattr(copies, name)))


def operation(cloud: Cloud, server: Any) -> Any:
    found = journal.of_server(cloud.parts.api_database, server.id)
    return next(move for move in found if move.recipe == operations.BUILD)


@pytest.mark.parametrize("point", POINTS)
def test_a_server_that_is_changed_while_it_is_built_stays_changed(cloud: Cloud, at_point: Any, point: str) -> None:
    hold = Hold(at_point, point)
    server = ask_for(cloud)
    assert hold.reached.wait(10)
    put(cloud, server, **CHANGES)
    hold.opened.set()
    cloud.wait(server, "ACTIVE")
    assert fields_of(cloud, server) == CHANGES


def test_a_server_that_is_changed_again_and_again_before_it_is_mapped_has_every_change(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, at_point: Any
) -> None:
    hold = Hold(at_point, "build.PlaceInCell.do.before")
    server = ask_for(cloud)
    assert hold.reached.wait(10)
    changes = list(CHANGES.items())
    before_the_mapping(monkeypatch, lambda: put(cloud, server, **dict([changes.pop()])), times=len(changes))
    hold.opened.set()
    cloud.wait(server, "ACTIVE")
    assert fields_of(cloud, server) == CHANGES
    assert len(cloud.interfaces(server)) == 1


@pytest.mark.parametrize("moment", ["before it failed", "before it was mapped"])
def test_a_server_that_fits_nowhere_is_kept_as_it_was_changed(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, at_point: Any, moment: str
) -> None:
    hold = Hold(at_point, "rpc.scheduler.select_destinations.request")
    server = ask_for(cloud, flavor_id=cloud.flavor("nowhere", gen=9))
    assert hold.reached.wait(10)
    if moment == "before it failed":
        put(cloud, server, **CHANGES)
    else:
        before_the_mapping(monkeypatch, lambda: put(cloud, server, **CHANGES))
    hold.opened.set()
    until(lambda: cloud.show(server), lambda found: found.status == "ERROR", "the build to fail")
    assert fields_of(cloud, server) == CHANGES
    assert len(cloud.faults(server, "cell0")) == 1


def test_a_server_that_is_deleted_before_it_is_mapped_leaves_nothing(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, at_point: Any
) -> None:
    hold = Hold(at_point, "build.PlaceInCell.do.before")
    server = ask_for(cloud)
    assert hold.reached.wait(10)
    before_the_mapping(monkeypatch, lambda: cloud.member.compute.delete_server(server.id))
    hold.opened.set()
    until(lambda: operation(cloud, server), lambda build: build.state == "failed", "the build to be undone")
    cloud.settle()
    assert cloud.admin.compute.find_server(server.id) is None
    assert cloud.allocations(server.id) == {}
    cells = cloud.parts.cells
    assert not any(copies.exists(cells.database(cell.uuid), server.id) for cell in cells.mappings())


def test_a_change_survives_a_takeover_of_its_build(cloud: Cloud, at_point: Any, other: ConductorService) -> None:
    hold = Hold(at_point, "build.PlaceInCell.do.before")
    server = ask_for(cloud)
    assert hold.reached.wait(10)
    put(cloud, server, name="before")
    take_over(cloud, other, operation(cloud, server).id)
    cloud.wait(server, "ACTIVE")
    put(cloud, server, **CHANGES)
    proceed(cloud, other, hold)
    cloud.settle()
    assert fields_of(cloud, server) == CHANGES


NOT_YET: list[tuple[str, str, Any]] = [
    ("post", "/metadata", {"metadata": {"key": "value"}}),
    ("put", "/metadata/key", {"meta": {"key": "value"}}),
    ("put", "/metadata", {"metadata": {}}),
    ("delete", "/metadata/given", None),
    ("put", "/tags/new", None),
    ("put", "/tags", {"tags": ["new"]}),
    ("delete", "/tags/given", None),
    ("delete", "/tags", None),
    ("post", "/action", {"lock": None}),
    ("post", "/action", {"unlock": None}),
    ("post", "/action", {"os-resetState": {"state": "error"}}),
]


@pytest.mark.parametrize("point", WITHOUT_CELL)
def test_what_can_not_be_changed_before_a_server_has_a_cell_is_refused(cloud: Cloud, at_point: Any, point: str) -> None:
    hold = Hold(at_point, point)
    server = ask_for(cloud, metadata={"given": "1"}, tags=["given"])
    assert hold.reached.wait(10)
    compute = cloud.admin.compute
    for method, path, body in NOT_YET:
        given = {} if body is None else {"json": body}
        answer = getattr(compute, method)(f"/servers/{server.id}{path}", microversion=VERSION, **given)
        assert answer.status_code == 409, (path, answer.text)
    hold.opened.set()
    built = cloud.wait(server, "ACTIVE")
    assert (built.metadata, built.tags, built.is_locked) == ({"given": "1"}, ["given"], False)


@pytest.mark.parametrize("point", POINTS[4:])
def test_what_is_changed_when_a_server_has_a_cell_stays_changed(cloud: Cloud, at_point: Any, point: str) -> None:
    """Metadata and tags can't be changed before it is built, as in Nova; a lock can."""
    hold = Hold(at_point, point)
    server = ask_for(cloud, metadata={"given": "1"}, tags=["given"])
    assert hold.reached.wait(10)
    compute, path = cloud.admin.compute, f"/servers/{server.id}"
    changed = compute.post(f"{path}/metadata", json={"metadata": {"new": "2"}}, microversion=VERSION)
    tagged = compute.put(f"{path}/tags/new", microversion=VERSION)
    locked = compute.post(f"{path}/action", json={"lock": None}, microversion=VERSION)
    hold.opened.set()
    built = cloud.wait(server, "ACTIVE")
    assert (changed.status_code, tagged.status_code, locked.status_code) == (409, 409, 202)
    assert (built.metadata, built.tags, built.is_locked) == ({"given": "1"}, ["given"], True)


@pytest.mark.parametrize("point", ["build.ChooseHost.do.before", *WITHOUT_CELL])
def test_a_server_that_is_unpinned_while_it_is_built_stays_unpinned(cloud: Cloud, at_point: Any, point: str) -> None:
    """PUT writes the request spec, too, which says on which host this build is to be: that is not lost, and not kept either."""
    host, hold = "cell1-host1", Hold(at_point, point)
    wanted = {"name": "server", "flavorRef": cloud.flavor("any.pinned"), "imageRef": cloud.image_id, "networks": "none"}
    pinned = wanted | {"availability_zone": "nova", "host": host}
    answer = cloud.admin.compute.post("/servers", json={"server": pinned}, microversion=VERSION)
    server = cloud.admin.compute.get_server(answer.json()["server"]["id"])
    assert hold.reached.wait(10)
    unpin = {"server": {"pinned_availability_zone": None}}
    assert cloud.admin.compute.put(f"/servers/{server.id}", json=unpin, microversion=VERSION).status_code == 200
    hold.opened.set()
    assert cloud.wait(server, "ACTIVE").compute_host == host
    spec = mappings.get_spec(cloud.parts.api_database, server.id)
    assert spec["availability_zone"] is None and "requested_destination" not in spec
    assert cloud.json_of(server)["pinned_availability_zone"] is None
