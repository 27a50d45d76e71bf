"""The resource of operations and ``causeway operation``: what takes long is watched, and cancelled while that is possible."""

from __future__ import annotations

import json
import uuid as uuids
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from causeway.cli.main import cli
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.missed import Missed, MissedOrder
from causeway.model.progress import OperationProgress
from causeway.store.api import cleanups
from tests.functional.servers.moves_cloud import Cloud, until

FLAVOR = Flavor("1", "m1.tiny", vcpus=1, memory_mb=512, root_gb=1)


def operations(cloud: Cloud, server: Any, *, everything: bool = False) -> list[dict[str, Any]]:
    """Those of a server, newest first, but for its build."""
    answer = cloud.admin.compute.get(
        f"/os-causeway/servers/{server.id}/operations", params={"all": "1"} if everything else {}
    )
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["operations"]
    msgspec.convert(found, list[OperationProgress])
    return [each for each in found if each["recipe"] != "build"]


def act(cloud: Cloud, server: Any, name: str, value: Any = None) -> Any:
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json={name: value}, microversion="2.96")
    assert answer.status_code == 202, answer.text
    return answer


def held_at_the_upload(cloud: Cloud) -> tuple[Any, str, dict[str, Any]]:
    """A server, its image whose upload waits until `heal`, and the operation."""
    server = cloud.boot()
    cloud.fail("delay", "/file$", method="PUT", service="image", seconds=60, times=1)
    image_id = act(cloud, server, "createImage", {"name": "copy"}).json()["image_id"]
    (found,) = until(
        lambda: operations(cloud, server),
        lambda found: bool(found) and found[0]["step"] == "UploadDisk",
        "the upload to begin",
    )
    return server, image_id, found


def run(cloud: Cloud, *words: str) -> Result:
    state_dir = ["--state-dir", str(cloud.parts.state.path)]
    return CliRunner().invoke(cli, [*words, *state_dir], env={"COLUMNS": "400"})


def cancel(cloud: Cloud, server: str) -> Result:
    return run(cloud, "operation", "cancel", server)


def check_cancelled(cloud: Cloud, server: Any, image_id: str) -> None:
    cloud.heal()
    cloud.settle()
    found = cloud.wait(server, "ACTIVE")
    assert found.task_state is None
    assert cloud.admin.image.find_image(image_id) is None
    (ended,) = operations(cloud, server, everything=True)
    assert (ended["state"], ended["recipe"], ended["is_cancellable"]) == ("failed", "create_image", False)
    assert ended["error"]["code"] == "move_cancelled"
    assert cloud.action(server, "createImage").message == "It was cancelled on request."
    assert cloud.faults(server) == []


def test_an_image_is_watched_from_its_first_step_to_its_end(cloud: Cloud) -> None:
    server, image_id, shown = held_at_the_upload(cloud)
    assert (shown["recipe"], shown["state"], shown["instance_uuid"]) == ("create_image", "running", server.id)
    assert (shown["migration_uuid"], shown["is_cancellable"], shown["waits_for"]) == (None, True, None)
    (step,) = shown["steps"]
    assert (step["step"], step["host"], step["seconds"]) == ("UploadDisk", cloud.show(server).compute_host, None)
    listed = cloud.admin.compute.get("/os-causeway/operations", params={"recipe": "create_image"}).json()["operations"]
    assert [each["id"] for each in listed] == [shown["id"]]
    path = f"/os-causeway/operations/{shown['id']}"
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(cloud.admin.compute.get, f"{path}?wait=30&seen={shown['version']}")
        # It waits for the upload; nothing else holds it up.
        assert (
            cloud.admin.compute.get(f"{path}?wait=1&seen={shown['version']}").json()["operation"]["version"]
            == (shown["version"])
        )
        assert not answer.done()
        cloud.heal()
        woken = answer.result(20).json()["operation"]
    assert woken["version"] != shown["version"]
    assert woken["steps"][0]["state"] == "done"
    cloud.settle()
    assert operations(cloud, server) == []
    (ended,) = operations(cloud, server, everything=True)
    assert (ended["state"], ended["step"]) == ("done", None)
    assert [each["step"] for each in ended["steps"]] == ["UploadDisk", "EndImage"]
    cloud.admin.image.delete_image(image_id)


def test_an_image_that_is_cancelled_leaves_nothing(cloud: Cloud) -> None:
    server, image_id, shown = held_at_the_upload(cloud)
    assert cloud.admin.compute.delete(f"/os-causeway/operations/{shown['id']}").status_code == 202
    assert operations(cloud, server)[0]["is_cancel_requested"]
    check_cancelled(cloud, server, image_id)
    late = cloud.admin.compute.delete(f"/os-causeway/operations/{shown['id']}")
    assert late.status_code == 409 and "it has ended" in late.json()["conflictingRequest"]["message"]


def test_an_image_that_waits_is_cancelled_at_once(cloud: Cloud) -> None:
    """Its step is retried in an hour; nobody is to wait for that."""
    cloud.option("first_pause", 3600.0, "moves")
    cloud.option("stuck_retry_interval", 3600.0, "moves")
    server = cloud.boot()
    cloud.fail("status", "/file$", service="image", method="PUT", status=503)
    image_id = act(cloud, server, "createImage", {"name": "copy"}).json()["image_id"]
    (shown,) = until(
        lambda: operations(cloud, server),
        lambda found: bool(found) and found[0]["waits_for"] is not None,
        "the operation to wait",
    )
    assert shown["waits_for"]["until"] and shown["waits_for"]["host"] == cloud.show(server).compute_host
    assert shown["waits_for"]["reason"].startswith(shown["error"]["message"])
    table = run(cloud, "operation", "list", "--server", server.id).output
    assert f"running, waits for {shown['waits_for']['host']} until" in table and shown["error"]["message"] in table
    assert cloud.admin.compute.delete(f"/os-causeway/operations/{shown['id']}").status_code == 202
    check_cancelled(cloud, server, image_id)


def test_members_may_neither_look_nor_cancel(cloud: Cloud) -> None:
    server, image_id, shown = held_at_the_upload(cloud)
    member, path = cloud.member.compute, f"/os-causeway/operations/{shown['id']}"
    answers = [
        member.get("/os-causeway/operations"),
        member.get(f"/os-causeway/servers/{server.id}/operations"),
        member.get(path),
    ]
    assert [each.status_code for each in [*answers, member.delete(path)]] == [403] * 4
    cloud.heal()
    cloud.wait(server, "ACTIVE")
    cloud.admin.image.delete_image(image_id)


def test_a_move_is_an_operation_with_bytes(cloud: Cloud) -> None:
    server = cloud.resized(cloud.boot())
    (move,) = operations(cloud, server, everything=True)
    assert (move["recipe"], move["is_past_pivot"]) == ("resize", True)
    assert (
        move["migration_uuid"]
        == cloud.admin.compute.get("/os-migrations", params={"instance_uuid": server.id}, microversion="2.59").json()[
            "migrations"
        ][0]["uuid"]
    )
    sent = next(step for step in move["steps"] if step["step"] == "HandOver")
    assert sent["bytes_done"] == sent["bytes_total"] > 0 and sent["percent"] == 100
    assert cloud.admin.compute.delete(f"/os-causeway/operations/{move['id']}").status_code == 409
    assert cloud.confirmed(server).status == "ACTIVE"
    assert [each["recipe"] for each in operations(cloud, server, everything=True)] == [
        "confirm_resize",
        "resize",
    ]


def test_operations_of_a_server_are_listed_in_pages(cloud: Cloud) -> None:
    server = cloud.confirmed(cloud.resized(cloud.boot()))
    seen, path = [], f"/os-causeway/servers/{server.id}/operations?all=1&limit=1"
    while path:
        body = cloud.admin.compute.get(path).json()
        assert len(body["operations"]) < 2
        seen += [each["recipe"] for each in body["operations"]]
        links = body.get("operations_links")
        path = "/os-causeway" + links[0]["href"].partition("/os-causeway")[2] if links else ""
    assert seen == ["confirm_resize", "resize", "build"]


# --- the commands


def test_list_and_show_have_every_operation(cloud: Cloud) -> None:
    server = cloud.confirmed(cloud.resized(cloud.boot()))
    image_id = act(cloud, server, "createImage", {"name": "copy"}).json()["image_id"]
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    recipes = ["build", "resize", "confirm_resize", "create_image"]
    # The second one is a name that works and is not listed.
    for group in ("operation", "move"):
        shown = json.loads(run(cloud, group, "show", server.id, "--json").output)
        assert [each["recipe"] for each in shown] == recipes
        assert {"attempt", "seconds", "percent", "first_error"} <= shown[0]["steps"][0].keys()
        assert "data" not in shown[0]
        listed = json.loads(run(cloud, group, "list", "--all", "--server", server.id, "--json").output)
        assert [each["recipe"] for each in listed] == recipes
        assert run(cloud, group, "list", "--server", server.id, "--json").output.strip() == "[]"
        table = run(cloud, group, "show", server.id).output
        assert "UploadDisk" in table and "HandOver" in table and "Attempts" in table
    words = ("--recipe", "resize", "--recipe", "create_image")
    of_them = json.loads(run(cloud, "operation", "list", "--all", "--server", server.id, *words, "--json").output)
    assert [each["recipe"] for each in of_them] == ["resize", "create_image"]
    assert "  move " not in CliRunner().invoke(cli, ["--help"]).output
    cloud.admin.image.delete_image(image_id)


def test_a_server_without_operations_has_exit_status_1(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.settle()
    assert run(cloud, "operation", "show", server.id).exit_code == 0
    nobody = str(uuids.uuid4())
    shown = run(cloud, "operation", "show", nobody)
    assert shown.exit_code == 1 and f"no operation of server {nobody}" in shown.output


@pytest.mark.parametrize("by", ["name", "id", "operation"])
def test_the_command_cancels_an_operation(cloud: Cloud, by: str) -> None:
    server, image_id, shown = held_at_the_upload(cloud)
    table = run(cloud, "operation", "list").output
    assert "create_image" in table and "UploadDisk" in table
    result = cancel(cloud, {"name": server.name, "id": server.id, "operation": shown["id"]}[by])
    assert result.exit_code == 0 and "create_image" in result.output, result.output
    for one in (server.id, shown["id"]):
        assert "running, to be cancelled" in run(cloud, "operation", "show", one).output
    check_cancelled(cloud, server, image_id)
    nothing = cancel(cloud, server.id)
    assert nothing.exit_code == 1 and "Nothing is being done" in nothing.output


def test_cancel_says_that_it_is_too_late(cloud: Cloud) -> None:
    server = cloud.resized(cloud.boot())
    with cloud.held("confirm_snapshot_based_resize_at_source") as reached:
        cloud.member.compute.confirm_server_resize(server.id)
        assert reached.wait(20)
        result = cancel(cloud, server.id)
    assert result.exit_code == 1 and "Too late" in result.output and "only goes forward" in result.output
    cloud.settle()
    assert cloud.wait(server, "ACTIVE").status == "ACTIVE"


def test_another_cloud_is_chosen_by_its_name(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot(name="known-by-its-name")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(cloud.parts.state.clouds))
    words = ["operation", "show", "known-by-its-name", "--json", "--os-cloud", "causeway-admin"]
    shown = json.loads(CliRunner().invoke(cli, words).output)
    assert [(each["recipe"], each["instance_uuid"]) for each in shown] == [("build", server.id)]


@pytest.mark.parametrize(
    "words", [("operation", "list", "--server"), ("operation", "show"), ("operation", "cancel"), ("explain",)]
)
def test_a_server_that_is_not_there_is_named(cloud: Cloud, words: tuple[str, ...]) -> None:
    more = ["--flavor=any.medium"] if words == ("explain",) else []
    said = run(cloud, *words, "nosuch", *more)
    assert (said.exit_code, said.output) == (2, "Error: There is no server nosuch.\n")


def test_the_command_lists_what_hosts_are_still_to_clean(cloud: Cloud) -> None:
    assert json.loads(run(cloud, "operation", "cleanups", "--json").output) == []
    uuid = str(uuids.uuid4())
    missed = MissedOrder("1", Missed.DESTROY, Instance(uuid, "project", "user", "left", FLAVOR))
    cell = cloud.parts.cells.mappings()[-1].uuid
    # A host that is not there: nobody carries it out.
    with cloud.parts.api_database.write() as connection:
        cleanups.note_in(connection, "gone", cell, missed)
    try:
        (left,) = json.loads(run(cloud, "operation", "cleanups", "--json").output)
        assert (left["host"], left["server"], left["missed"]) == ("gone", uuid, "destroy_instance")
        table = run(cloud, "operation", "cleanups").output
        assert "gone" in table and uuid in table
    finally:
        cleanups.delete(cloud.parts.api_database, "gone", ["1"])


def test_who_can_not_be_asked(tmp_path: Any) -> None:
    result = CliRunner().invoke(cli, ["operation", "cancel", "x", "--state-dir", str(tmp_path)])
    assert result.exit_code == 2
