"""``POST /os-causeway/drains/plan`` and ``causeway drain plan``: what a drain would do, and why some servers can't go."""

from __future__ import annotations

import json
from collections import Counter
from functools import reduce
from operator import and_
from typing import Any

import pytest
from click.testing import CliRunner, Result

from causeway.cli.main import cli
from causeway.clients import session
from causeway.model.states import TaskState, VmState
from causeway.store.cell import hosts, instances
from causeway.store.database import statements
from tests.functional.servers.moves_cloud import Cloud

# Hosts report when they start, and not again: what changes, is changed by somebody.
CLOUD = {
    "overrides": {
        "DEFAULT": {"report_interval": 3600, "service_down_time": 7200},
        "quota": {"ram": -1, "cores": -1, "instances": -1},
    }
}
MISSING = "11111111-2222-3333-4444-555555555555"


def asked(cloud: Cloud, status: int = 200, *, caller: Any = None, path: str = "/plan", **drain: Any) -> Any:
    """The plan, or what the refusal says."""
    body = {"drain": {"name": "old hardware", **drain}}
    answer = (caller or cloud.admin).compute.post(f"/os-causeway/drains{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()["plan"] if status < 300 else next(iter(answer.json().values()))["message"]


def of(plan: Any, server: Any) -> Any:
    return next(each for each in plan["servers"] if each["instance_uuid"] == server.id)


@pytest.fixture
def starter(cloud: Cloud) -> Any:
    """Boots in cell1: an administrator may name the host."""

    def start(flavor: str = "any.small", host: str = "cell1-host1", **fields: Any) -> Any:
        made = cloud.admin.compute.create_server(
            name=fields.pop("name", "server"),
            flavor_id=flavor,
            image_id=cloud.image_id,
            networks=[{"uuid": cloud.network_id}],
            host=host,
            **fields,
        )
        return cloud.wait(made, "ACTIVE")

    return start


def change(cloud: Cloud, server: Any, **changes: Any) -> None:
    instances.update(cloud.cell("cell1"), server.id, **changes)


def test_a_plan_moves_all_servers_that_can_move(cloud: Cloud, starter: Any) -> None:
    running, off = starter(), starter(host="cell1-host2")
    cloud.member.compute.stop_server(off.id)
    cloud.wait(off, "SHUTOFF")
    plan = asked(cloud, scope={"cells": ["cell1"]})
    assert (plan["movable"], plan["blocked"], plan["fits"], plan["shortages"]) == (2, 0, True, [])
    gone, cold = of(plan, running), of(plan, off)
    assert (gone["state"], gone["how"], gone["target_cell"]) == ("pending", "near_live", "cell2")
    assert gone["source_cell"] == "cell1" and gone["source_host"] == "cell1-host1"
    assert (cold["how"], cold["pause"]) == ("cold", 0.0)
    assert gone["bytes"] == 1 << 30 and gone["seconds"] > 0 and gone["pause"] > 0
    # One goes to each: they are spread.
    assert {gone["target_host"], cold["target_host"]} == {"cell2-host1", "cell2-host2"}
    assert plan["ends_at"] > plan["began_at"] and plan["bytes"] == 2 << 30
    assert plan["summary"].startswith("All 2 servers can go: 2 GiB in ")


def test_inside_its_cell_a_guest_goes_live(cloud: Cloud, starter: Any) -> None:
    server = starter()
    row = of(asked(cloud, scope={"hosts": ["cell1-host1"]}, targets={"cells": ["cell1"]}), server)
    assert (row["how"], row["target_host"], row["pause"]) == ("live", "cell1-host2", 1.0)


def test_a_plan_counts_the_pause_of_a_hypervisor_that_misses_writes(
    cloud: Cloud, starter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes live, and stands still while its memory travels."""
    server = starter()
    report = cloud.embedded.computes["cell1-host1"]._reporter.report_alive
    with monkeypatch.context() as patched:
        patched.setattr(cloud.driver("cell1-host1"), "stands_still_when_live", True)
        report()
    row = of(asked(cloud, scope={"hosts": ["cell1-host1"]}, targets={"cells": ["cell1"]}), server)
    report()
    assert row["how"] == "live" and row["pause"] > 2


def test_what_was_asked_for_is_done_where_it_applies(cloud: Cloud, starter: Any) -> None:
    server = starter()
    ways = {
        how: of(asked(cloud, scope={"cells": ["cell1"]}, how=how), server)["how"] for how in ("warm", "cold", "live")
    }
    assert ways == {"warm": "warm", "cold": "cold", "live": "near_live"}
    cloud.option("warm", "never", "moves")
    row = of(asked(cloud, scope={"cells": ["cell1"]}, how="warm"), server)
    assert (row["state"], row["help"]) == ("blocked", "Move it cold.")
    assert "[moves] warm is never" in row["why"]


def test_why_a_flavor_keeps_a_server_and_another_one_would_not(cloud: Cloud) -> None:
    server = cloud.boot()
    plan = asked(cloud, scope={"cells": ["cell1"]})
    row = of(plan, server)
    assert (row["state"], row["why"]) == ("blocked", "2 hosts: 2 lack the aggregate property gen=1.")
    assert "flavors" in row["help"] and row["target_host"] is None
    assert (plan["movable"], plan["fits"], plan["ends_at"]) == (0, False, None)
    row = of(asked(cloud, scope={"cells": ["cell1"]}, flavors={"gen1.small": "gen2.small"}), server)
    assert (row["state"], row["new_flavor"], row["how"]) == ("pending", "gen2.small", "warm")


def test_a_plan_says_what_a_cell_lacks_for_all_servers(cloud: Cloud, starter: Any) -> None:
    servers = [starter() for _number in range(2)]
    (free,) = {node.memory_mb for node in hosts.list_nodes(cloud.cell("cell2"))}
    flavor = cloud.flavor("nearly-a-host", ram=free - 1024, vcpus=1)
    plan = asked(cloud, scope={"cells": ["cell1"]}, flavors={"any.small": flavor}, targets={"hosts": ["cell2-host1"]})
    states = Counter(of(plan, server)["state"] for server in servers)
    assert states == {"pending": 1, "blocked": 1}
    (blocked,) = [each for each in plan["servers"] if each["state"] == "blocked"]
    assert blocked["why"].startswith(f"1 host: 1 is full on MEMORY_MB (needs {free - 1024}, ")
    assert blocked["help"].startswith("Free ") and "of memory on cell2-host1" in blocked["help"]
    (shortage,) = plan["shortages"]
    assert (shortage["where"], shortage["resource"], shortage["servers"]) == ("cell2", "MEMORY_MB", 1)
    assert shortage["sentence"].startswith("cell2 lacks ") and shortage["sentence"].endswith(" of memory for 1 server")
    assert shortage["sentence"] in plan["summary"]


@pytest.mark.parametrize(
    ("changes", "why", "help_"),
    [
        ({"task_state": TaskState.REBOOTING}, "Something is done with it", "Wait"),
        ({"vm_state": VmState.RESCUED}, "It is in rescue mode.", "unrescue"),
        ({"vm_state": VmState.RESIZED}, "waits for the confirm", "Confirm or revert"),
        ({"vm_state": VmState.SHELVED_OFFLOADED}, "shelved and offloaded", "audit"),
    ],
)
def test_states_in_which_a_server_can_not_go(
    cloud: Cloud, starter: Any, changes: dict[str, Any], why: str, help_: str
) -> None:
    server = starter()
    before = {"task_state": None, "vm_state": VmState.ACTIVE}
    change(cloud, server, **changes)
    try:
        row = of(asked(cloud, scope={"cells": ["cell1"]}), server)
    finally:
        change(cloud, server, **before)
    assert row["state"] == "blocked" and why in row["why"] and help_ in row["help"]


def test_a_paused_server_keeps_its_memory_or_stays(cloud: Cloud, starter: Any) -> None:
    server = starter()
    cloud.member.compute.pause_server(server.id)
    cloud.wait(server, "PAUSED")
    assert of(asked(cloud, scope={"cells": ["cell1"]}), server)["how"] == "near_live"
    row = of(asked(cloud, scope={"cells": ["cell1"]}, how="cold"), server)
    assert row["state"] == "blocked" and "Unpause" in row["help"]


def test_a_suspended_server_keeps_its_memory_or_stays(cloud: Cloud, starter: Any) -> None:
    server = starter()
    cloud.member.compute.suspend_server(server.id)
    cloud.wait(server, "SUSPENDED")
    row = of(asked(cloud, scope={"cells": ["cell1"]}), server)
    assert (row["how"], row["pause"]) == ("near_live", 0.0)
    row = of(asked(cloud, scope={"cells": ["cell1"]}, how="cold"), server)
    assert row["state"] == "blocked" and "Resume" in row["help"]
    database = cloud.cell("cell1")
    (service,) = hosts.list_services(database, host="cell1-host1", binary="nova-compute")
    hosts.update_service(database, service.uuid, forced_down=True)
    try:
        row = of(asked(cloud, scope={"cells": ["cell1"]}), server)
    finally:
        hosts.update_service(database, service.uuid, forced_down=False)
    assert row["state"] == "blocked" and "memory that it was suspended with" in row["why"]
    (node,) = hosts.list_nodes(database, host="cell1-host1")
    can = dict(node.capabilities)
    node.capabilities = can | {"supports_suspended_moves": False}
    hosts.save_node(database, node)
    try:
        row = of(asked(cloud, scope={"cells": ["cell1"]}), server)
    finally:
        node.capabilities = can
        hosts.save_node(database, node)
    assert row["state"] == "blocked" and "move the memory of suspended guests" in row["why"]


def test_a_server_of_a_dead_host_is_blocked_with_advice(cloud: Cloud, starter: Any) -> None:
    server = starter()
    database = cloud.cell("cell1")
    (service,) = hosts.list_services(database, host="cell1-host1", binary="nova-compute")
    hosts.update_service(database, service.uuid, forced_down=True)
    try:
        row = of(asked(cloud, scope={"cells": ["cell1"]}), server)
    finally:
        hosts.update_service(database, service.uuid, forced_down=False)
    assert row["state"] == "blocked" and "cell1-host1 is dead" in row["why"] and "evacuate" in row["help"]


def test_members_of_a_group_are_kept_apart(cloud: Cloud, starter: Any) -> None:
    group = cloud.admin.compute.create_server_group(name="apart", policy="anti-affinity")
    try:
        servers = [starter(host=f"cell1-host{number}", scheduler_hints={"group": group.id}) for number in (1, 2)]
        plan = asked(cloud, scope={"cells": ["cell1"]})
        assert {of(plan, server)["target_host"] for server in servers} == {"cell2-host1", "cell2-host2"}
        plan = asked(cloud, scope={"cells": ["cell1"]}, targets={"hosts": ["cell2-host1"]})
        assert Counter(of(plan, server)["state"] for server in servers) == {"pending": 1, "blocked": 1}
        (blocked,) = [each for each in plan["servers"] if each["state"] == "blocked"]
        assert "anti-affinity group" in blocked["why"]
    finally:
        cloud.clean()
        cloud.admin.compute.delete_server_group(group.id)


def test_an_owners_hold_is_obeyed_and_shown(cloud: Cloud, starter: Any) -> None:
    server, unclear = starter(), starter()
    cloud.admin.compute.set_server_metadata(server.id, **{"causeway:hold": "2999-03-05"})
    # Written before the API refused what is no date.
    change(cloud, unclear, metadata={"causeway:hold": "soon"})
    plan = asked(cloud, scope={"cells": ["cell1"]}, deadline="2998-01-01T00:00:00Z")
    assert of(plan, server)["not_before"] == "2999-03-05T00:00:00"
    assert of(plan, unclear)["state"] == "blocked" and "is no date" in of(plan, unclear)["why"]
    assert plan["ends_at"] > "2999-03-05" and plan["meets_deadline"] is False
    assert any("asked to wait" in note for note in plan["notes"])


def test_scopes_are_given_by_host_aggregate_zone_project_and_server(cloud: Cloud, starter: Any) -> None:
    one, other = starter(), starter(host="cell1-host2")
    project = cloud.show(one).project_id
    rack = cloud.admin.compute.create_aggregate(name="rack")
    cloud.admin.compute.add_host_to_aggregate(rack, "cell1-host2")
    try:
        for scope, wanted in (
            ({"hosts": ["cell1-host1"]}, {one.id}),
            ({"aggregates": ["rack"]}, {other.id}),
            ({"projects": [project]}, {one.id, other.id}),
            ({"servers": [other.id]}, {other.id}),
            ({"servers": [other.id], "hosts": ["cell1-host1"]}, {one.id, other.id}),
        ):
            assert {each["instance_uuid"] for each in asked(cloud, scope=scope)["servers"]} == wanted, scope
        assert {each["target_host"] for each in asked(cloud, scope={"servers": [one.id]})["servers"]} != {"cell1-host1"}
    finally:
        cloud.admin.compute.remove_host_from_aggregate(rack, "cell1-host2")
        cloud.admin.compute.delete_aggregate(rack.id)


def test_a_cell_that_does_not_answer(cloud: Cloud, starter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here, project = starter(), cloud.show(starter(host="cell2-host1")).project_id
    away = next(cell.uuid for cell in cloud.parts.cells.mappings() if cell.name == "cell2")
    monkeypatch.setattr(cloud.parts.cells, "is_down", lambda uuid: uuid == away)
    said = asked(cloud, 409, scope={"cells": ["cell2"]})
    assert said == "The servers to be moved can't be read: cell2 does not answer. Try again later."
    plan = asked(cloud, scope={"projects": [project]})
    assert [each["instance_uuid"] for each in plan["servers"]] == [here.id]
    assert any(note.startswith("Cell cell2 does not answer") for note in plan["notes"])


def test_members_may_not_ask(cloud: Cloud) -> None:
    assert "causeway:drains:create" in asked(cloud, 403, caller=cloud.member, scope={"cells": ["cell1"]})


def test_a_plan_costs_the_same_for_many_servers_as_for_few(cloud: Cloud, starter: Any) -> None:
    starter()
    few = cost(cloud)
    for _number in range(5):
        starter()
    many = cost(cloud)
    assert many == few
    # One for each resource class; the network, volume and image services are not asked at all.
    assert few[1] == {"GET /allocation_candidates": 3}


def cost(cloud: Cloud) -> tuple[Counter[str], Counter[str]]:
    """SQL statements by database, calls to services around: the least of three times, as the cloud's periodic work adds some."""
    cloud.settle()
    asked(cloud, scope={"cells": ["cell1"]})
    costs = [_cost(cloud) for _time in range(3)]
    return reduce(and_, (sent for sent, _made in costs)), reduce(and_, (made for _sent, made in costs))


def _cost(cloud: Cloud) -> tuple[Counter[str], Counter[str]]:
    sent, made = statements.snapshot(), calls(cloud)
    asked(cloud, scope={"cells": ["cell1"]})
    return statements.snapshot() - sent, calls(cloud) - made


def calls(cloud: Cloud) -> Counter[str]:
    """Placement is reached in the process here, all others by URL."""
    return session.calls.snapshot() + cloud.parts.around.placement.calls


# --- the command


def run(cloud: Cloud, *arguments: str) -> Result:
    command = ["drain", "plan", *arguments, "--state-dir", str(cloud.parts.state.path)]
    return CliRunner().invoke(cli, command, env={"COLUMNS": "220"})


def test_the_command_shows_each_server_and_the_whole(cloud: Cloud, starter: Any) -> None:
    starter(name="goes")
    cloud.boot(name="stays")
    shown = run(cloud, "--cell", "cell1", "--window", "daily 00:00-00:00 Europe/Zurich", "--deadline", "2999-01-01")
    assert shown.exit_code == 1, shown.output
    for text in (
        "goes",
        "near-live",
        "stays",
        "lack the aggregate property gen=1",
        "1 of 2 servers can go",
        "in time but for",
    ):
        assert text in shown.output
    shown = run(cloud, "--cell", "cell1", "--flavor", "gen1.small=gen2.small", "--json")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["movable"] == 2


def test_the_command_takes_names_of_servers_and_projects(cloud: Cloud, starter: Any) -> None:
    server = starter(name="by-its-name")
    shown = run(cloud, "--server", "by-its-name", "--to-cell", "cell2", "--json")
    assert [each["instance_uuid"] for each in json.loads(shown.output)["servers"]] == [server.id]
    shown = run(cloud, "--project", "demo", "--to-host", "cell2-host1", "--json")
    assert [each["target_host"] for each in json.loads(shown.output)["servers"]] == ["cell2-host1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cell", "cell9"], "There is no cell cell9."),
        ([], "Say what is to be moved"),
        (["--cell", "cell1", "--window", "sometimes"], "'sometimes' is not 'DAYS HH:MM-HH:MM [ZONE]'"),
        (["--cell", "cell1", "--window", "mon-fry 22:00-06:00"], "'mon-fry' is none of: daily"),
        (["--cell", "cell1", "--flavor", "gen1.small"], "OLD=NEW"),
        (["--cell", "cell1", "--deadline", "march"], "'march' is not a time such as"),
        (["--project", "nobody"], "There is no project nobody."),
    ],
)
def test_the_command_says_what_is_wrong(cloud: Cloud, arguments: list[str], said: str) -> None:
    shown = run(cloud, *arguments)
    assert shown.exit_code == 2 and said in shown.output
