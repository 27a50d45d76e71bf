"""The plug-in of the ``openstack`` client: what it shows of operations, moves and cells is what the API answers."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.openstack_client import ended, listed, openstack, started


def api(cloud: Cloud, path: str) -> Any:
    answer = cloud.admin.compute.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def held_at_the_upload(cloud: Cloud, name: str = "imaged") -> tuple[Any, dict[str, Any]]:
    """A server whose image waits to be uploaded until `heal`, and the operation."""
    server = cloud.boot(name=name)
    cloud.fail("delay", "/file$", method="PUT", service="image", seconds=60, times=1)
    words = {"createImage": {"name": "copy"}}
    assert cloud.member.compute.post(f"/servers/{server.id}/action", json=words, microversion="2.96").ok
    (found,) = until(
        lambda: api(cloud, f"/os-causeway/operations?server={server.id}&recipe=create_image")["operations"],
        lambda found: bool(found) and found[0]["step"] == "UploadDisk",
        "the upload to begin",
    )
    return server, found


def clean(cloud: Cloud) -> None:
    cloud.heal()
    cloud.settle()
    for image in cloud.admin.image.images(name="copy"):
        cloud.admin.image.delete_image(image.id)


# --- operations


def test_operations_are_listed_as_the_api_lists_them(cloud: Cloud) -> None:
    server = cloud.confirmed(cloud.resized(cloud.boot(name="traveller")))
    assert listed(cloud, "operation", "list", "--server", "traveller") == []
    found = listed(cloud, "operation", "list", "--server", "traveller", "--all", "--long")
    known = api(cloud, f"/os-causeway/operations?all=1&server={server.id}")["operations"]
    assert [each["recipe"] for each in known] == ["confirm_resize", "resize", "build"]
    for shown, each in zip(found, known, strict=True):
        assert (shown["ID"], shown["Server"], shown["Recipe"]) == (each["id"], server.id, each["recipe"])
        assert (shown["State"], shown["Started At"], shown["Ended At"]) == (
            "done",
            each["started_at"],
            each["ended_at"],
        )
        assert (shown["Error"], shown["Migration"]) == (None, each["migration_uuid"])
    # Conditions, and pages of one.
    words = ("--all", "--recipe", "resize", "--recipe", "build", "--server", server.id)
    assert [each["ID"] for each in listed(cloud, "operation", "list", *words)] == [known[1]["id"], known[2]["id"]]
    page = listed(cloud, "operation", "list", *words, "--limit", "1", "--marker", known[1]["id"])
    assert [each["ID"] for each in page] == [known[2]["id"]]
    of_server = listed(cloud, "server", "operation", "list", "traveller", "--all", "--limit", "2")
    assert [each["ID"] for each in of_server] == [each["id"] for each in known[:2]]
    shown = listed(cloud, "operation", "show", known[1]["id"])
    assert shown == api(cloud, f"/os-causeway/operations/{known[1]['id']}")["operation"]
    table, _said = openstack(cloud, "operation", "show", known[1]["id"])
    assert "HandOver on cell1-host" in table and "[{" not in table


def test_an_operation_is_followed_to_its_end(cloud: Cloud) -> None:
    _server, operation = held_at_the_upload(cloud)
    words = ("operation", "show", operation["id"], "--wait", "-f", "value", "-c", "state")
    with started(cloud, *words) as process:
        assert any("running: UploadDisk" in line for line in process.stderr)
        cloud.heal()
        written, _said = ended(process)
    assert written.strip() == "done"
    clean(cloud)


def test_an_operation_is_cancelled_and_its_end_is_no_success(cloud: Cloud) -> None:
    server, operation = held_at_the_upload(cloud)
    (running,) = listed(cloud, "server", "operation", "list", server.id)
    assert (running["ID"], running["State"], running["Step"]) == (operation["id"], "running", "UploadDisk")
    assert openstack(cloud, "operation", "cancel", operation["id"]) == ("", "")
    cloud.heal()
    words = ("operation", "show", operation["id"], "--wait", "-f", "value", "-c", "state")
    assert openstack(cloud, *words, status=1)[0].strip() == "failed"
    _written, late = openstack(cloud, "operation", "cancel", operation["id"], status=1)
    assert "it has ended" in late and "1 of 1 operations failed" in late
    clean(cloud)


def test_an_operation_is_found_by_its_server(cloud: Cloud) -> None:
    server, operation = held_at_the_upload(cloud)
    assert listed(cloud, "operation", "show", "imaged")["id"] == operation["id"]
    assert openstack(cloud, "operation", "cancel", "imaged") == ("", "")
    cloud.heal()
    cloud.settle()
    ended = listed(cloud, "operation", "show", server.id)
    assert (ended["id"], ended["state"]) == (operation["id"], "failed")
    assert "Nothing is being done with server imaged" in openstack(cloud, "operation", "cancel", "imaged", status=1)[1]
    clean(cloud)


def test_what_is_refused_is_said(cloud: Cloud) -> None:
    nobody = "11111111-2222-3333-4444-555555555555"
    _written, said = openstack(cloud, "operation", "show", nobody, status=1)
    assert said.strip() == f"There is neither an operation nor a server {nobody}."
    assert "There is no server nobody" in openstack(cloud, "server", "operation", "list", "nobody", status=1)[1]
    for name in ("twin", "twin"):
        cloud.boot(name=name)
    assert "There are 2 servers named twin" in openstack(cloud, "server", "move", "explain", "twin", status=1)[1]
    assert "The cloud refused (403)" in openstack(cloud, "operation", "list", status=1, user="causeway")[1]


# --- moves


def test_a_command_explains_where_a_server_could_go(cloud: Cloud) -> None:
    server = cloud.boot(name="traveller")
    done = listed(cloud, "server", "move", "explain", "traveller", "--flavor", "gen2.small")
    known = api(cloud, f"/os-causeway/servers/{server.id}/move-candidates?flavor=gen2.small")["move_candidates"]
    assert {each["Host"]: each["Fits"] for each in done} == {each["host"]: each["fits"] for each in known["candidates"]}
    best = next(each for each in done if each["Chosen"])
    assert best["Recipe"] == "resize"
    assert {each["name"]: each["passed"] for each in best["Checks"]}["claim"] is True
    table, said = openstack(cloud, "server", "move", "explain", "traveller", "--flavor", "gen2.small")
    assert "lacks the aggregate property gen=2" in table and "claim: ok" in table
    for text in (f"Server {server.id}, on ", "Would move: a disk of", known["summary"]):
        assert text in said


def test_no_host_fits(cloud: Cloud) -> None:
    cloud.boot(name="traveller")
    cloud.flavor("huge", ram=10**6)
    words = ("server", "move", "explain", "traveller", "--flavor", "huge", "-f", "value", "-c", "Fits")
    assert set(openstack(cloud, *words, status=1, anew=True)[0].split()) == {"False"}


# --- cells


def test_cells_are_listed_with_what_is_in_them(cloud: Cloud) -> None:
    cloud.boot()
    found = {each["Name"]: each for each in listed(cloud, "cell", "list")}
    known = {each["name"]: each for each in api(cloud, "/os-causeway/cells")["cells"]}
    assert found.keys() == known.keys()
    for name, each in known.items():
        shown = found[name]
        assert (shown["ID"], shown["Disabled"], shown["Answers"]) == (each["id"], each["disabled"], each["answers"])
        counts = {
            "total": shown["Hosts"],
            "up": shown["Up"],
            "down": shown["Down"],
            "disabled": shown["Disabled Hosts"],
        }
        assert (counts, shown["Servers"]) == (each["hosts"], each["servers"])
    one = listed(cloud, "cell", "show", "cell1")
    assert (one["id"], one["hosts"], one["hosts_up"], one["servers"]) == (
        known["cell1"]["id"],
        known["cell1"]["hosts"]["total"],
        known["cell1"]["hosts"]["up"],
        known["cell1"]["servers"],
    )
    assert one["answers"] is True and one["servers"] > 0
    assert "Cell nowhere could not be found" in openstack(cloud, "cell", "show", "nowhere", status=1)[1]


# --- the plug-in


@pytest.mark.parametrize("module", ["plugin", "operations", "moves", "cells", "audit", "drains"])
def test_the_plug_in_needs_nothing_of_the_services(module: str) -> None:
    """What an operator's client does not have is not imported."""
    look = (
        "import sys; heavy = ('sqlalchemy', 'falcon', 'oslo_messaging', 'msgspec', 'placement', 'alembic');"
        f"import causeway.openstack_plugin.{module};"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
