"""``/os-causeway/adoption``: how far a cloud is taken over from Nova, for administrators."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.adoption import AdoptedHost, Finding, HostState
from causeway.model.host import CellMapping
from causeway.store.api import adopted_hosts, adoptions
from causeway.store.api import cells as cell_records
from causeway.store.api.adoptions import Adoption
from causeway.store.database import utcnow

PORT = Finding(
    "port.unknown", "6a5b4c3e-9f51-4c2f-9b7e-117d3c0f0a6a", "It has a port that no record names.", "Detach it."
)
FOLDER = Finding("folder.unused", "a", "A folder is of no server.", blocks=False)


@pytest.fixture
def imported(cloud: Any) -> None:
    """cell1: host a was looked at and has a server, b is taken, c was never Nova's. cell2: d was imported."""
    for name, cell in (("a", "cell1"), ("b", "cell1"), ("c", "cell1"), ("d", "cell2")):
        cloud.host(name, cell)
    server = cloud.server("cell1", host="a", node="a")
    with cloud.services.api.write() as connection:
        adoptions.save_in(
            connection,
            [Adoption("server", server.uuid, "0" * 64, utcnow()), Adoption("flavor", "1", "0" * 64, utcnow())],
        )
        adopted_hosts.save_in(
            connection,
            [
                AdoptedHost("a", cloud.cell_uuids["cell1"], HostState.LOOKED, [PORT, FOLDER]),
                AdoptedHost("b", cloud.cell_uuids["cell1"], HostState.TAKEN),
                AdoptedHost("d", cloud.cell_uuids["cell2"]),
            ],
        )


def adoption_of(admin: Any, query: str = "") -> Any:
    answer = admin.get(f"/os-causeway/adoption{query}")
    assert answer.status == 200, answer.text
    return answer.json["adoption"]


@pytest.mark.usefixtures("imported")
def test_an_administrator_sees_how_far_each_host_is_and_what_blocks(admin: Any, cloud: Any) -> None:
    found = adoption_of(admin)
    assert (found["is_finished"], found["imported"]) == (False, {"flavor": 1, "server": 1})
    (cell1, cell2) = found["cells"]
    assert (cell1["name"], cell1["uuid"], cell1["is_disabled"]) == ("cell1", cloud.cell_uuids["cell1"], False)
    assert [(host["host"], host["state"], host["servers"]) for host in cell1["hosts"] + cell2["hosts"]] == [
        ("a", "looked", 1),
        ("b", "taken", 0),
        ("c", None, 0),
        ("d", "imported", 0),
    ]
    assert cell1["hosts"][0]["findings"] == [
        {"kind": each.kind, "subject": each.subject, "what": each.what, "remedy": each.remedy, "blocks": each.blocks}
        for each in (PORT, FOLDER)
    ]
    assert cell1["hosts"][0]["updated_at"] and cell1["hosts"][2]["updated_at"] is None


@pytest.mark.usefixtures("imported")
def test_servers_of_a_cell_that_does_not_answer_are_unknown_and_its_hosts_are_not(admin: Any, cloud: Any) -> None:
    nowhere = CellMapping(
        cloud.cell_uuids["cell1"], "cell1", "none:///", "sqlite:////nowhere/at/all.sqlite", disabled=True
    )
    cell_records.save_cell(cloud.services.api, nowhere)
    (cell1, cell2) = adoption_of(admin)["cells"]
    assert cell1["is_disabled"]
    assert [(host["state"], host["servers"]) for host in cell1["hosts"]] == [
        ("looked", None),
        ("taken", None),
        (None, None),
    ]
    assert [host["servers"] for host in cell2["hosts"]] == [0]


@pytest.mark.usefixtures("imported")
def test_in_brief_no_cell_is_asked(admin: Any) -> None:
    assert adoption_of(admin, "?brief=1") == {"is_finished": False, "imported": {"flavor": 1, "server": 1}}


def test_a_cloud_of_which_nothing_was_nova_s_says_so(admin: Any) -> None:
    assert adoption_of(admin, "?brief=1") == {"is_finished": False, "imported": {}}


def test_that_the_cloud_is_finished_is_not_counted_as_imported(admin: Any, cloud: Any) -> None:
    adoptions.note_finished(cloud.services.api)
    assert adoption_of(admin, "?brief=1") == {"is_finished": True, "imported": {}}


def test_members_and_unknown_parameters_are_refused(admin: Any, api: Any) -> None:
    assert api.get("/os-causeway/adoption").status == 403
    for query in ("brief=2", "host=a"):
        assert admin.get(f"/os-causeway/adoption?{query}").status == 400
