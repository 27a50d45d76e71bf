"""``GET /os-causeway/servers/{id}/move-candidates`` and ``causeway explain``: where a server could go, and why not elsewhere."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from causeway.cli.main import cli
from causeway.errors import ClaimRefused
from causeway.rpc.transport import Verdict
from causeway.scheduler.explain import Explanation
from causeway.store.api import shown_operations
from causeway.store.cell import hosts
from tests.functional.servers.moves_cloud import Cloud

# Hosts report when they start, and not again: what changes, is changed by somebody.
CLOUD = {"overrides": {"DEFAULT": {"report_interval": 3600, "service_down_time": 7200}, "quota": {"ram": -1}}}


def candidates(cloud: Cloud, server: Any, flavor: str | None = None, caller: Any = None, status: int = 200) -> Any:
    query = {} if flavor is None else {"flavor": flavor}
    answer = (caller or cloud.admin).compute.get(f"/os-causeway/servers/{server.id}/move-candidates", params=query)
    assert answer.status_code == status, answer.text
    body = answer.json()
    return body["move_candidates"] if status == 200 else next(iter(body.values()))["message"]


def by_host(found: Any) -> dict[str, Any]:
    return {candidate["host"]: candidate for candidate in found["candidates"]}


@pytest.fixture
def huge(cloud: Cloud) -> Iterator[Any]:
    flavor = cloud.admin.compute.create_flavor(name="huge", ram=99_000_000, vcpus=1, disk=1)
    yield flavor
    cloud.admin.compute.delete_flavor(flavor)


def test_every_host_of_every_cell_has_its_verdict(cloud: Cloud) -> None:
    server = cloud.boot()
    home = cloud.show(server).compute_host
    found = candidates(cloud, server, "gen2.small")
    hosts_found = by_host(found)
    assert set(hosts_found) == {"cell1-host1", "cell1-host2", "cell2-host1", "cell2-host2"}
    assert (found["source_host"], found["source_cell"], found["flavor"]) == (home, "cell1", "gen2.small")
    assert found["refusal"] is None

    refused = hosts_found["cell1-host2" if home == "cell1-host1" else "cell1-host1"]
    assert (refused["fits"], refused["refused_by"]) == (False, "AggregateInstanceExtraSpecsFilter")
    assert refused["reason"] == "lacks the aggregate property gen=2"
    assert refused["values"] == {"wants": "2", "has": "1"}
    assert hosts_found[home]["reason"] == "is left out of this request"

    for host in ("cell2-host1", "cell2-host2"):
        fits = hosts_found[host]
        assert fits["fits"] and fits["recipe"] == "resize" and fits["cell"] == "cell2"
        assert fits["weights"].keys() >= {"RAMWeigher", "CrossCellWeigher"}
        assert fits["checked"]
        assert {check["name"]: check["passed"] for check in fits["checks"]} == dict.fromkeys(
            ("claim", "volumes", "ports"), True
        )
    assert next(each["host"] for each in found["candidates"] if each["chosen"]).startswith("cell2")


def test_a_move_keeps_why_its_host_was_chosen_in_short(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    kept = shown_operations.explanation(cloud.parts.api_database, cloud.moves(server)[0].id)
    explanation = msgspec.convert(kept, Explanation)
    (chosen,) = [one for one in explanation.hosts if one.selected]
    assert chosen.host == cloud.show(server).compute_host
    assert {one.cell_name for one in explanation.hosts} == {"cell2"}
    assert {group.filter for group in explanation.others_refused} >= {"AggregateInstanceExtraSpecsFilter"}
    assert explanation.summary().startswith("4 hosts: ")


def test_an_explanation_says_what_would_move_and_by_which_recipe(cloud: Cloud) -> None:
    server = cloud.boot(flavor="any.small")
    volume = cloud.volume()
    cloud.attach(server, volume)
    found = candidates(cloud, server)
    moves = found["moves"]
    assert moves["disk_gb"] == 1 and moves["disk_bytes"] > 0
    assert moves["travel"].startswith("its disks are copied while it runs: directly to hosts that reach its own")
    assert moves["memory"] == (
        "its memory (128 MiB) is lost, for it boots; a live migration keeps it inside the cell, while the server runs, and to"
        " another cell, if policy allows that: so, too, where hypervisors reach one another, else with the server standing still"
        " for 4 s at most"
    )
    assert [each["volume_id"] for each in moves["volumes"]] == [volume.id]
    assert moves["ports"] == [port.id for port in cloud.admin.network.ports(device_id=server.id)]
    recipes = {each["cell"]: each["recipe"] for each in found["candidates"] if each["fits"]}
    home = found["source_cell"]
    away = {"cell1": "cell2", "cell2": "cell1"}[home]
    assert recipes == {home: "resize", away: "resize"}


def test_how_its_memory_would_come_to_hosts_of_another_cell(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot(flavor="any.small")
    home = cloud.show(server).compute_host
    reached, apart = (host for host in cloud.parts.computes if host[:5] != home[:5])
    monkeypatch.setattr(cloud.driver(reached), "live_network", cloud.driver(home).live_network)
    checks = {
        each["host"]: {check["name"]: check["message"] for check in each["checks"]}
        for each in candidates(cloud, server)["candidates"]
    }
    assert checks[reached]["memory"] == "would come live, standing still for 1 s at most"
    assert checks[apart]["memory"] == (
        "would come near-live, standing still for 4 s at most: The hypervisor of the chosen host can't be reached by that of the"
        " server's host."
    )
    assert not any("memory" in said for host, said in checks.items() if host[:5] == home[:5])
    # Its hypervisor would miss what it writes to memory that has been sent.
    [node] = hosts.list_nodes(cloud.cell(home[:5]), host=home)
    changed = {**node.capabilities, "stands_still_when_live": True}
    hosts.save_node(cloud.cell(home[:5]), dataclasses.replace(node, capabilities=changed))
    reported = {each["host"]: each["checks"] for each in candidates(cloud, server)["candidates"]}
    assert [check["message"] for check in reported[reached] if check["name"] == "memory"] == [
        "would come live, standing still for 4 s at most"
    ]
    hosts.save_node(cloud.cell(home[:5]), node)
    # A resize boots it.
    assert not any(
        check["name"] == "memory"
        for each in candidates(cloud, server, "any.medium")["candidates"]
        for check in each["checks"]
    )
    cloud.option("direct", "never", "moves")
    checked = [each["checks"] for each in candidates(cloud, server)["candidates"] if each["host"] == reached]
    assert "[moves] direct is never" in checked[0][-1]["message"]


def test_an_explanation_says_why_disks_would_travel_while_the_server_is_off(cloud: Cloud) -> None:
    server = cloud.boot(flavor="any.small")
    cloud.option("warm", "never", "moves")
    assert candidates(cloud, server)["moves"]["travel"].endswith(": [moves] warm is never")
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    assert candidates(cloud, server)["moves"]["travel"].endswith(": the server does not run")
    assert candidates(cloud, server)["moves"]["memory"] == ""


def test_the_chosen_host_is_the_one_that_the_move_takes(cloud: Cloud) -> None:
    server = cloud.boot()
    (chosen,) = [each for each in candidates(cloud, server, "gen2.small")["candidates"] if each["chosen"]]
    assert cloud.resized(server).compute_host == chosen["host"]


def test_an_explanation_changes_nothing(cloud: Cloud) -> None:
    cloud.needs_devcloud("looks into the files and databases of all services")
    server = cloud.boot()
    cloud.attach(server, cloud.volume())
    cloud.show(server)
    before = everything(cloud)
    assert any(each["checked"] for each in candidates(cloud, server, "gen2.small")["candidates"])
    assert everything(cloud) == before
    run(cloud, server.id)
    assert everything(cloud) == before


def everything(cloud: Cloud) -> dict[str, str]:
    """Every database of the cloud, Placement's and devcloud's among them, and every file of its hosts."""
    found = {}
    root = cloud.parts.state.path
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.suffix in (".sqlite", ".db"):
            with sqlite3.connect(path) as connection:
                lines = [line for line in connection.iterdump() if "token" not in line[:60].lower()]
            found[name] = "\n".join(lines)
        elif path.is_file() and name.startswith("hosts"):
            found[name] = f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    assert any("placement" in name for name in found) and any("devcloud" in name for name in found)
    return found


def test_hosts_that_placement_left_out_have_a_reason(cloud: Cloud, huge: Any) -> None:
    server = cloud.boot()
    found = candidates(cloud, server, huge.id)
    full = [each for each in found["candidates"] if each["refused_by"] == "Placement"]
    assert {each["reason"] for each in full} == {"is full on MEMORY_MB"}
    assert all(each["needs"] == 99_000_000 and 0 < each["free"] < 99_000_000 for each in full)
    assert "are full on MEMORY_MB (needs 99000000" in found["summary"] and "cell2-host1" in found["summary"]


def test_a_host_that_lacks_a_trait_is_refused_by_placement(cloud: Cloud) -> None:
    flavor = cloud.admin.compute.create_flavor(name="avx", ram=128, vcpus=1, disk=1)
    cloud.admin.compute.create_flavor_extra_specs(flavor, {"trait:HW_CPU_X86_AVX512F": "required"})
    server = cloud.boot()
    found = candidates(cloud, server, flavor.id)
    assert {each["reason"] for each in found["candidates"] if each["refused_by"] == "Placement"} == {
        "lacks the trait HW_CPU_X86_AVX512F"
    }
    cloud.admin.compute.delete_flavor(flavor)


def test_a_host_that_is_down_is_refused_by_the_compute_filter(cloud: Cloud) -> None:
    server = cloud.boot()
    with down(cloud, "cell2-host1"):
        found = by_host(candidates(cloud, server, "gen2.small"))
    assert (found["cell2-host1"]["refused_by"], found["cell2-host1"]["reason"]) == ("ComputeFilter", "is down")
    assert found["cell2-host1"]["values"] == {"last seen up": "forced down"}
    assert found["cell2-host2"]["fits"]


@contextmanager
def down(cloud: Cloud, host: str) -> Iterator[None]:
    """A host that an administrator has forced down."""
    database = cloud.cell(host[:5])
    (service,) = hosts.list_services(database, host=host, binary="nova-compute")
    hosts.update_service(database, service.uuid, forced_down=True)
    try:
        yield
    finally:
        hosts.update_service(database, service.uuid, forced_down=False)


def test_a_host_that_does_not_answer_says_so(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.lose("check_move_to_host", Verdict.LOSE_REQUEST)
    found = [each for each in candidates(cloud, server, "gen2.small")["candidates"] if each["fits"]]
    assert sorted(each["checked"] for each in found) == [False, True]
    (silent,) = [each for each in found if not each["checked"]]
    assert silent["note"].startswith("did not answer within")


def test_only_so_many_hosts_are_asked(cloud: Cloud) -> None:
    cloud.option("explain_checked_hosts", 1, "moves")
    server = cloud.boot()
    found = [each for each in candidates(cloud, server, "gen2.small")["candidates"] if each["fits"]]
    assert [each["checked"] for each in found] == [True, False]
    assert found[1]["note"] == "not asked: only the best 1 hosts are"


def test_a_volume_that_a_host_can_not_connect(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()
    cloud.attach(server, cloud.volume())

    def refuse(_info: Any) -> None:
        raise ClaimRefused("This host has no way to the volume.")

    monkeypatch.setattr(cloud.driver("cell2-host1"), "check_volume_connectable", refuse)
    answer = candidates(cloud, server, "gen2.small")
    found = by_host(answer)
    refused = found["cell2-host1"]
    said = {check["name"]: check for check in refused["checks"]}
    assert said["volumes"]["passed"] is False and "no way to the volume" in said["volumes"]["message"]
    assert (refused["fits"], refused["chosen"], refused["recipe"]) == (False, False, None)
    assert refused["refused_by"] == "HostCheck" and "volumes" in refused["reason"]
    assert all(check["passed"] for check in found["cell2-host2"]["checks"])
    assert found["cell2-host2"]["fits"] and found["cell2-host2"]["chosen"]
    assert answer["candidates"][0]["host"] == "cell2-host2"
    assert "1 fits" in answer["summary"] and "could not take the server" in answer["summary"]

    monkeypatch.setattr(cloud.driver("cell2-host2"), "check_volume_connectable", refuse)
    shown = run(cloud, server.id, "--flavor", "gen2.small")
    assert shown.exit_code == 1 and "no way to the volume" in shown.output


def test_a_request_that_would_be_refused_now_says_why(cloud: Cloud) -> None:
    server = cloud.resized(cloud.boot())
    assert "while it is in vm_state resized" in candidates(cloud, server, "any.small")["refusal"]


def test_members_may_not_ask(cloud: Cloud) -> None:
    server = cloud.boot()
    assert "causeway:move_candidates" in candidates(cloud, server, caller=cloud.member, status=403)


@pytest.mark.parametrize(
    ("query", "status"),
    [("flavor=nothing", 400), ("flavour=gen2.small", 400), ("flavor=a&flavor=b", 400)],
)
def test_bad_questions_are_refused(cloud: Cloud, query: str, status: int) -> None:
    server = cloud.boot()
    assert cloud.admin.compute.get(f"/os-causeway/servers/{server.id}/move-candidates?{query}").status_code == status


def test_a_server_that_is_not_there(cloud: Cloud) -> None:
    missing = "/os-causeway/servers/11111111-2222-3333-4444-555555555555/move-candidates"
    assert cloud.admin.compute.get(missing).status_code == 404


# --- the command


def run(cloud: Cloud, *arguments: str) -> Result:
    command = ["explain", *arguments, "--state-dir", str(cloud.parts.state.path)]
    return CliRunner().invoke(cli, command, env={"COLUMNS": "200"})


def test_the_command_prints_a_table_with_reasons(cloud: Cloud) -> None:
    cloud.boot(name="one-of-its-name")
    shown = run(cloud, "one-of-its-name", "--flavor", "gen2.small")
    assert shown.exit_code == 0, shown.output
    for text in ("lacks the aggregate property gen=2", "resize", "1 port", "claim: ok", "4 hosts: "):
        assert text in shown.output


def test_no_host_fits(cloud: Cloud, huge: Any) -> None:
    server = cloud.boot()
    shown = run(cloud, server.id, "--flavor", huge.id, "--json")
    assert shown.exit_code == 1
    assert not any(each["fits"] for each in json.loads(shown.output)["candidates"])


def test_who_can_not_be_asked(cloud: Cloud, tmp_path: Any) -> None:
    assert run(cloud, "nobody").exit_code == 2
    assert CliRunner().invoke(cli, ["explain", "x", "--state-dir", str(tmp_path)]).exit_code == 2


# --- the fault of a move that found no host


def test_a_failed_move_says_why_no_host_fitted(cloud: Cloud, huge: Any) -> None:
    server = cloud.boot()
    with down(cloud, "cell2-host1"):
        cloud.member.compute.resize_server(server.id, huge.id)
        cloud.failed(server)
    fault = cloud.faults(server)[-1]
    said = "No valid host was found. 4 hosts: 2 are full on MEMORY_MB (needs 99000000, "
    assert fault.message.startswith(said), fault.message
    assert "1 is down" in fault.message and "1 is left out of this request" in fault.message
    assert "host1" not in fault.message and "host2" not in fault.message
    assert "1 is down (cell2-host1)" in fault.details
    action = cloud.action(server, "resize")
    assert [event["details"] for event in action.events if event["event"] == "conductor_migrate_server"] == [
        fault.message
    ]
    shown = cloud.admin.compute.get("/os-migrations", params={"instance_uuid": server.id}).json()["migrations"][0]
    assert shown["causeway:error"] == fault.message


def test_a_failed_build_says_why_no_host_fitted(cloud: Cloud, huge: Any) -> None:
    server = cloud.member.compute.create_server(
        name="too-large", flavor_id=huge.id, image_id=cloud.image_id, networks=[{"uuid": cloud.network_id}]
    )
    with pytest.raises(AssertionError, match="No valid host was found"):
        cloud.wait(server, "ACTIVE")
    to_user = cloud.member.compute.get_server(server.id).fault
    message = to_user["message"]
    assert message.startswith("No valid host was found. 4 hosts: "), message
    assert "are full on MEMORY_MB (needs 99000000, " in message, message
    assert "cell1-host1" not in json.dumps(to_user)
    assert "cell1-host1" in cloud.show(server).fault["details"]
