"""Builds and deletes on the engine of operations: broken off anywhere, or cancelled.

Two conductors share the work. Who dies is a thread that ends where it stands: nobody hears of it.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

from causeway import errors
from causeway.audit import audit_embedded
from causeway.conductor.service import ConductorService
from causeway.conductor.upkeep import recovery
from causeway.model import operations
from causeway.operations import build
from causeway.store import archive
from causeway.store.api import journal
from causeway.store.database import utcnow
from tests.functional.servers.dying_threads import THREADS_DIE
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.slow_conductors import Hold, proceed, take_over

CLOUD: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"report_interval": 1, "rpc_response_timeout": 5},
        "conductor": {"recovery_interval": 3},
        "moves": {"lease": 2.0},
        "fault_injection": {"enabled": True},
    }
}
pytestmark = [*THREADS_DIE, pytest.mark.usefixtures("other")]
EDGES = pytest.mark.parametrize("edge", ["before", "after"])
STEPS_OF_BUILD = ["ChooseHost", "PlaceInCell", "MakeDevices", "SpawnGuest", "EndBuild"]


def ask_for(cloud: Cloud, **fields: Any) -> Any:
    """A server whose root disk is a volume that is to be made from the demo image."""
    root = {
        "boot_index": 0,
        "source_type": "image",
        "destination_type": "volume",
        "uuid": cloud.image_id,
        "volume_size": 1,
        "delete_on_termination": True,
    }
    given = {"networks": [{"uuid": cloud.network_id}], "block_device_mapping": [root], **fields}
    return cloud.member.compute.create_server(**{"name": "server", "flavor_id": "any.small", **given})


def volumes_of_all(cloud: Cloud) -> list[Any]:
    return list(cloud.admin.block_storage.volumes(all_projects=True))


def ports_of_network(cloud: Cloud) -> set[str]:
    return {port.id for port in cloud.admin.network.ports(network_id=cloud.network_id)}


def operation(cloud: Cloud, server: Any, recipe: str) -> Any:
    """The newest one of a recipe."""
    found = journal.of_server(cloud.parts.api_database, server.id)
    return [move for move in found if move.recipe == recipe][-1]


def check_built(cloud: Cloud, server: Any) -> None:
    """It runs, once, with one port and one volume, both of its user's project; the services agree."""
    found = cloud.wait(server, "ACTIVE")
    cloud.settle()
    project = cloud.member.current_project_id
    assert cloud.hosts_of(server) == {found.compute_host: "guest"}
    assert [port.project_id for port in cloud.admin.network.ports(device_id=server.id)] == [project]
    assert [volume.project_id for volume in volumes_of_all(cloud)] == [project]
    assert len(cloud.attachments(server)) == len(cloud.interfaces(server)) == 1
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def is_gone(cloud: Cloud, server: Any) -> None:
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    cloud.settle()
    assert cloud.hosts_of(server) == {} and cloud.ports(server) == {} and cloud.attachments(server) == []
    assert cloud.allocations(server.id) == {}
    until(lambda: volumes_of_all(cloud), lambda left: not left, "the volumes to go")
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def deleted(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.delete_server(server.id)
    is_gone(cloud, server)


@EDGES
@pytest.mark.parametrize("step", STEPS_OF_BUILD)
def test_a_build_continues_wherever_its_conductor_died(cloud: Cloud, dies_at: Any, step: str, edge: str) -> None:
    ports = ports_of_network(cloud)
    dies_at(f"build.{step}.do.{edge}")
    server = ask_for(cloud)
    check_built(cloud, server)
    assert operation(cloud, server, operations.BUILD).epoch > 2
    assert cloud.actions(server) == ["create"]
    deleted(cloud, server)
    assert ports_of_network(cloud) == ports


@pytest.mark.parametrize(
    "point",
    [
        "rpc.scheduler.select_destinations.reply",
        "call.network POST /v2.0/ports.reply",
        "call.volume POST /v3/volumes.reply",
        "call.volume POST /v3/attachments.reply",
        "rpc.compute.build_guest.request",
        "rpc.compute.build_guest.reply",
    ],
)
def test_what_was_made_when_the_conductor_died_is_found_again(cloud: Cloud, dies_at: Any, point: str) -> None:
    ports = ports_of_network(cloud)
    dies_at(point)
    server = ask_for(cloud)
    check_built(cloud, server)
    deleted(cloud, server)
    assert ports_of_network(cloud) == ports


@pytest.mark.parametrize("step", ["SpawnGuest", "MakeDevices", "PlaceInCell", "ChooseHost"])
def test_a_build_that_failed_is_undone_though_its_conductor_died(cloud: Cloud, at_point: Any, step: str) -> None:
    ports = ports_of_network(cloud)

    def fail_and_die_later() -> None:
        def die() -> None:
            raise SystemExit

        at_point(f"build.{step}.undo.before", die)
        raise errors.OperationFailed("The host has no more of it.")

    at_point("build.SpawnGuest.do.after", fail_and_die_later)
    server = ask_for(cloud)
    until(lambda: cloud.show(server), lambda found: found.status == "ERROR", "the build to fail")
    cloud.settle()
    assert cloud.show(server).fault["message"] == "The host has no more of it."
    assert cloud.hosts_of(server) == {} and cloud.ports(server) == {} and cloud.allocations(server.id) == {}
    assert operation(cloud, server, operations.BUILD).epoch > 2
    deleted(cloud, server)
    assert ports_of_network(cloud) == ports


@EDGES
def test_a_server_that_fits_nowhere_is_kept_with_its_reason_though_its_conductor_died(
    cloud: Cloud, dies_at: Any, edge: str
) -> None:
    nowhere = cloud.flavor("nowhere", gen=9)
    dies_at(f"build.roll_back.{edge}")
    server = cloud.member.compute.create_server(
        name="server", flavor_id=nowhere, image_id=cloud.image_id, networks="none"
    )
    until(lambda: cloud.show(server), lambda found: found.status == "ERROR", "the build to fail")
    cloud.settle()
    assert "No valid host" in cloud.show(server).fault["message"]
    assert len(cloud.faults(server, "cell0")) == 1
    deleted(cloud, server)


@EDGES
@pytest.mark.parametrize("step", ["TearDown", "EndDelete"])
def test_a_delete_continues_wherever_its_conductor_died(cloud: Cloud, dies_at: Any, step: str, edge: str) -> None:
    server = cloud.boot_from_volume()
    dies_at(f"delete.{step}.do.{edge}")
    deleted(cloud, server)
    assert operation(cloud, server, operations.DELETE).epoch > 2
    assert cloud.events(server, "delete") == [("compute_terminate_instance", "Success")]


@pytest.mark.parametrize(
    "point",
    [
        "rpc.compute.remove_guest.reply",
        "call.network DELETE /v2.0/ports/{port_id}.reply",
        "call.volume DELETE /v3/volumes.reply",
        "call.placement DELETE /allocations.reply",
    ],
)
def test_a_delete_whose_conductor_died_after_a_call_continues(cloud: Cloud, dies_at: Any, point: str) -> None:
    server = cloud.boot_from_volume()
    dies_at(point)
    deleted(cloud, server)


def test_a_delete_whose_api_died_when_it_was_accepted_gives_the_server_its_task(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = cloud.boot()

    def die(*_arguments: Any) -> None:
        raise errors.DatabaseFailed("The API ends here.")

    monkeypatch.setattr("causeway.operations.requests.mark", die)
    deleted(cloud, server)
    assert cloud.actions(server) == ["create", "delete"]
    assert cloud.events(server, "delete") == [("compute_terminate_instance", "Success")]


def test_a_port_that_outlived_the_record_of_its_server_goes_with_it(cloud: Cloud, at_point: Any) -> None:
    """The server is deleted when its conductor has died after the port's answer came."""
    ports, died = ports_of_network(cloud), threading.Event()

    def die() -> None:
        died.set()
        raise SystemExit

    at_point("call.network POST /v2.0/ports.reply", die)
    server = ask_for(cloud)
    assert died.wait(10)
    deleted(cloud, server)
    assert ports_of_network(cloud) == ports
    assert operation(cloud, server, operations.BUILD).state == "failed"


@pytest.mark.parametrize(
    ("point", "outcome"),
    [
        ("build.ChooseHost.do.before", "failed"),
        ("build.ChooseHost.do.after", "failed"),
        ("build.PlaceInCell.do.before", "failed"),
        ("build.PlaceInCell.do.after", "failed"),
        ("build.MakeDevices.do.before", "failed"),
        ("build.MakeDevices.do.after", "failed"),
        # It is too late to keep the guest from being made.
        ("rpc.compute.build_guest.request", "done"),
        ("build.EndBuild.do.before", "done"),
    ],
)
def test_a_server_that_is_deleted_anywhere_in_its_build_leaves_nothing(
    cloud: Cloud, at_point: Any, point: str, outcome: str
) -> None:
    """2088066 on Launchpad (with a volume: tests/functional/known_bugs/test_reports_of_builds.py)."""
    ports, hold = ports_of_network(cloud), Hold(at_point, point)
    server = ask_for(cloud)
    assert hold.reached.wait(10)
    cloud.member.compute.delete_server(server.id)
    hold.opened.set()
    is_gone(cloud, server)
    assert ports_of_network(cloud) == ports
    assert operation(cloud, server, operations.BUILD).state == outcome
    # Of one that never had a cell the journal is all that is left.
    never_had_a_cell = point.startswith(("build.ChooseHost", "build.PlaceInCell.do.before"))
    assert bool(archive.archive_never_built(cloud.parts.api_database)) == never_had_a_cell


@pytest.mark.parametrize(
    ("point", "cell"), [("build.ChooseHost.do.after", "cell0"), ("build.MakeDevices.do.after", "cell1")]
)
def test_a_build_that_is_cancelled_is_undone_and_the_server_says_so(
    cloud: Cloud, at_point: Any, point: str, cell: str
) -> None:
    ports, hold = ports_of_network(cloud), Hold(at_point, point)
    server = ask_for(cloud, flavor_id="gen1.small") if cell == "cell1" else ask_for(cloud)
    assert hold.reached.wait(10)
    build = operation(cloud, server, operations.BUILD)
    assert cloud.admin.compute.delete(f"/os-causeway/operations/{build.id}").status_code == 202
    hold.opened.set()
    until(lambda: cloud.show(server), lambda found: found.status == "ERROR", "the build to be undone")
    cloud.settle()
    assert "cancelled" in cloud.show(server).fault["message"]
    assert len(cloud.faults(server, cell)) == 1
    assert ports_of_network(cloud) == ports and cloud.allocations(server.id) == {}
    deleted(cloud, server)


def test_a_delete_that_fails_may_be_asked_for_again(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.fail("status", "/ports", service="network", method="DELETE", status=403)
    cloud.member.compute.delete_server(server.id)
    found = until(lambda: cloud.show(server), lambda found: found.status == "ERROR", "the delete to fail")
    cloud.settle()
    assert found.task_state is None and found.fault["message"]
    assert operation(cloud, server, operations.DELETE).state == "failed"
    cloud.parts.devcloud.faults.clear()
    deleted(cloud, server)


@pytest.mark.parametrize(
    ("service", "path"), [("network", "/ports"), ("volume", "/attachments"), ("volume", "/volumes")]
)
def test_a_delete_waits_for_services_that_are_unavailable_for_a_while(cloud: Cloud, service: str, path: str) -> None:
    server, volumes = cloud.boot_from_volume(), volumes_of_all(cloud)
    cloud.fail("status", path, service=service, method="DELETE", status=503, times=2)
    deleted(cloud, server)
    assert operation(cloud, server, operations.DELETE).state == "done"
    assert len(volumes_of_all(cloud)) == len(volumes) - 1


@pytest.mark.parametrize(
    ("service", "path"), [("network", "/ports"), ("volume", "/attachments"), ("volume", "/volumes")]
)
def test_a_build_waits_for_services_that_are_unavailable_for_a_moment(cloud: Cloud, service: str, path: str) -> None:
    ports, volumes = ports_of_network(cloud), volumes_of_all(cloud)
    cloud.fail("status", path, service=service, method="POST", status=503, times=1)
    server = ask_for(cloud)
    cloud.wait(server, "ACTIVE")
    assert len(ports_of_network(cloud)) == len(ports) + 1 and len(volumes_of_all(cloud)) == len(volumes) + 1
    deleted(cloud, server)


def test_a_volume_that_was_made_for_a_server_that_was_not_built_is_not_the_servers(cloud: Cloud) -> None:
    cloud.break_driver(list(cloud.parts.computes), "spawn")
    server = ask_for(cloud)
    found = until(lambda: cloud.show(server), lambda found: found.status == "ERROR", "the build to fail")
    cloud.settle()
    assert found.attached_volumes == [] and cloud.attachments(server) == []
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
    cloud.heal()
    deleted(cloud, server)


def test_a_delete_that_waits_for_a_confirm_hears_of_its_end(cloud: Cloud, at_point: Any) -> None:
    """A host that is down holds the confirm up; the delete continues as soon as that one has ended."""
    server = cloud.boot(flavor="any.small")
    source = server.compute_host
    cloud.resized(server, "any.medium")
    hold = Hold(at_point, "confirm_resize.CheckTarget.do.before")
    cloud.member.compute.delete_server(server.id)
    assert hold.reached.wait(10)
    delete = until(
        lambda: operation(cloud, server, operations.DELETE), lambda move: move.owner is None, "the delete to wait"
    )
    assert "confirm" in delete.error["message"] and delete.state == "running"
    hold.opened.set()
    is_gone(cloud, server)
    assert cloud.driver(source).inspect(server.id).has_disks is False


@pytest.mark.parametrize(
    "point",
    [
        "rpc.scheduler.select_destinations.request",
        "call.network POST /v2.0/ports.request",
        "call.volume POST /v3/volumes.request",
        "call.volume POST /v3/attachments.request",
    ],
)
def test_a_conductor_that_was_only_slow_does_no_harm(
    cloud: Cloud, at_point: Any, other: ConductorService, point: str
) -> None:
    """It was about to call a service when another took the build over."""
    hold = Hold(at_point, point)
    server = ask_for(cloud)
    assert hold.reached.wait(10)
    take_over(cloud, other, operation(cloud, server, operations.BUILD).id)
    cloud.wait(server, "ACTIVE")
    proceed(cloud, other, hold)
    check_built(cloud, server)
    deleted(cloud, server)


def test_recovery_leaves_alone_what_the_journal_has(cloud: Cloud, at_point: Any) -> None:
    hold = Hold(at_point, "build.ChooseHost.do.before")
    server = ask_for(cloud)
    assert hold.reached.wait(10)
    assert recovery.abandoned(cloud.parts.conductor._services, utcnow()) == []
    hold.opened.set()
    check_built(cloud, server)
    assert len(journal.of_server(cloud.parts.api_database, server.id)) == 1
    deleted(cloud, server)


def asked_hosts(cloud: Cloud, server: Any) -> list[tuple[str, str]]:
    """(host, result) of each host that was asked for the guest, oldest first."""
    events = cloud.action(server, "create").events[::-1]
    return [(each["host"], each["result"]) for each in events if each["event"].startswith("compute__do_build")]


def test_a_host_that_can_not_make_the_guest_is_followed_by_its_alternate(cloud: Cloud) -> None:
    cloud.break_driver(list(cloud.parts.computes), "spawn", times=1)
    server = cloud.boot(flavor="any.small")
    (first, refused), (second, made) = asked_hosts(cloud, server)
    assert (refused, made, first != second) == ("Error", "Success", True)
    assert cloud.show(server).compute_host == second
    assert not cloud.driver(first).inspect(server.id).has_disks
    cloud.settle()
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_a_host_that_is_refused_by_placement_is_passed_over(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alternate that has no room any more is not asked: the build fails with what the last host that was asked said."""
    monkeypatch.setattr(build, "claim", refuse_claim)
    cloud.break_driver(list(cloud.parts.computes), "spawn")
    server = ask_for(cloud, block_device_mapping=[], image_id=cloud.image_id)
    found = until(
        lambda: cloud.admin.compute.get_server(server.id), lambda now: now.status == "ERROR", "the build to fail"
    )
    assert [result for _host, result in asked_hosts(cloud, server)] == ["Error"]
    assert "The hypervisor broke in spawn" in found.fault["message"]


def refuse_claim(*_given: Any) -> None:
    raise errors.ClaimRefused("There is no room any more.")
