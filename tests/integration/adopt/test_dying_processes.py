"""Processes are killed while records are imported, and while a host changes its owner.

No guest notices, a host never has two owners, and the same command completes what it had begun. Of conductors one matters:
the compute service of a host asks it for missed orders before it serves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from causeway.model.adoption import OWNED
from tests.functional.processes.deployment import CONDUCTORS
from tests.functional.processes.own_process import until
from tests.integration.adopt import held_rows, outside, owners
from tests.integration.adopt.adopted_cloud import AdoptedCloud, adopted_cloud, new_cloud
from tests.integration.adopt.answers import known, pause_and_unpause
from tests.integration.adopt.canary import Canary
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.owners import CAUSEWAY, CAUSEWAY_STOPPED, NOBODY, NOVA, NOVA_STOPPED, Owner
from tests.integration.adopt.population import Population, Populator

pytestmark = pytest.mark.timeout(1800)

BUILT = "built"
OF_A_RUN = {
    "adopted_hosts": {"updated_at"},
    "adoptions": {"imported_at"},
    "cell_mappings": {"database_connection"},
    "migrations": {"id"},
}


@pytest.fixture(scope="module")
def adopted(cloud: NovaCloud, population: Population) -> Iterator[AdoptedCloud]:  # noqa: ARG001
    with adopted_cloud(cloud, "dying") as adopted:
        yield adopted


@pytest.fixture(scope="module")
def host(cloud: NovaCloud, population: Population, adopted: AdoptedCloud) -> Iterator[str]:  # noqa: ARG001
    """Its nova-compute is off."""
    host = outside.guest_of(cloud, population.servers["active"]).host
    cloud.nova.stop_compute(host)
    yield host
    cloud.nova.start_compute(host)


@pytest.fixture
def canary(cloud: NovaCloud, population: Population, adopted: AdoptedCloud, host: str) -> Iterator[Canary]:
    """Nova's, before and afterwards."""
    canary = Canary(cloud, adopted, host, population.servers["active"], outside.guests(cloud))
    yield canary
    if cloud.nova.runs_compute(host):
        cloud.nova.kill_compute(host)
    for name in (*CONDUCTORS, host):
        if adopted.processes[name].has_ended:
            canary.restart(name)
    if canary.state in OWNED:
        canary.hand_back()
    canary.check(NOVA_STOPPED)
    outside.check_undisturbed(cloud, canary.guests, canary.uuid)


@pytest.fixture
def taken(canary: Canary) -> Canary:
    """Causeway's, with a server that has changed since."""
    canary.take()
    change(canary, "taken")
    return canary


def change(canary: Canary, why: str) -> None:
    canary.adopted.admin.compute.set_server_metadata(canary.uuid, changed=why)


# import


def test_an_import_that_is_killed_three_times_ends_as_one_that_was_not(
    cloud: NovaCloud,
    population: Population,  # noqa: ARG001
) -> None:
    with prepared(cloud, "whole") as whole, prepared(cloud, "killed") as killed:
        report = whole.import_records()
        # No server; servers of which one half is there; servers of one cell only.
        for database, table in (("cell1", "instances"), ("api", "instance_mappings"), ("cell2", "instances")):
            with held_rows.held(killed.databases[database], table) as await_writer:
                command = killed.begin("import", "--batch=1", *killed.of_nova)
                await_writer()
                command.kill()
        assert len(outside.rows(killed.databases["api"], "instance_mappings")) not in (0, servers_of(report))
        assert not killed.import_records()["unchanged"]
        # Nova changes records by itself, one server a minute (what it remembers of ports): both follow.
        until(
            lambda: digests(killed.import_records()) == digests(whole.import_records()),
            bool,
            "both to have read the same records",
            owners.PATIENCE,
        )
        assert records(killed) == records(whole)
        before = {name: outside.checksums(url) for name, url in killed.databases.items()}
        assert killed.import_records()["unchanged"]
        assert before == {name: outside.checksums(url) for name, url in killed.databases.items()}


@contextmanager
def prepared(cloud: NovaCloud, name: str) -> Iterator[AdoptedCloud]:
    """Only databases and files."""
    with new_cloud(cloud, name) as made:
        made.make_databases()
        yield made


def servers_of(report: dict[str, Any]) -> int:
    return int(report["kinds"]["server"]["read"])


def digests(report: dict[str, Any]) -> dict[str, Any]:
    return {kind: (counts["read"], counts["digest"]) for kind, counts in report["kinds"].items()}


def records(adopted: AdoptedCloud) -> dict[tuple[str, str], Any]:
    """All that it has in its databases, but for what is of a run."""
    return {
        (name, table): [{key: value for key, value in row.items() if key not in of_a_run(name, table)} for row in rows]
        for name, url in adopted.databases.items()
        for table in outside.checksums(url)
        if (rows := outside.rows(url, table))
    }


def of_a_run(database: str, table: str) -> set[str]:
    """Columns: when it was, where it wrote, and the numbers of rows, of which one that died has used up some."""
    return {"id", "action_id"} if database != "api" else OF_A_RUN.get(table, set())


# take


@pytest.mark.parametrize(
    ("point", "held", "then"),
    [
        ("rpc.adopting.take.request", NOVA_STOPPED, NOVA_STOPPED),
        # Its host continues.
        ("adopt.take.held", NOBODY, CAUSEWAY),
        ("rpc.adopting.take.reply", CAUSEWAY, CAUSEWAY),
    ],
)
def test_a_take_whose_command_is_killed_is_completed_by_the_next(
    canary: Canary, point: str, held: Owner, then: Owner
) -> None:
    with canary.held_at(point) as await_it:
        command = canary.begin_take()
        await_it()
        canary.check(held)
        command.kill()
    canary.check(then)
    assert canary.state == "taking"
    canary.take()


@pytest.mark.parametrize(
    ("point", "died", "then"),
    [("adopt.take.held", NOBODY, NOBODY), ("adopt.take.marked", CAUSEWAY_STOPPED, CAUSEWAY)],
)
def test_a_take_whose_compute_is_killed_is_completed_by_the_next(
    canary: Canary, point: str, died: Owner, then: Owner
) -> None:
    with canary.held_at(point) as await_it:
        command = canary.begin_take()
        await_it()
        canary.compute.kill()
    canary.check(died)
    canary.restart(canary.host)
    canary.check(then)
    assert command.wait_ended(owners.PATIENCE) == 1
    assert "could not be taken" in command.log_of_this_life
    # Whether the host has answered by then: nothing is imported over its records.
    assert canary.state in OWNED
    canary.take()


def test_a_take_waits_for_a_conductor_that_was_killed(canary: Canary) -> None:
    with canary.held_at("adopt.take.held") as await_it:
        command = canary.begin_take()
        await_it()
        for name in CONDUCTORS:
            canary.adopted.processes[name].kill()
    canary.check(CAUSEWAY_STOPPED)
    for name in CONDUCTORS:
        canary.restart(name)
    assert command.wait_ended(owners.PATIENCE) == 0, command.log_of_this_life
    canary.check(CAUSEWAY)
    pause_and_unpause(canary.adopted.admin, canary.uuid)


# hand-back


@pytest.mark.parametrize("table", ["instances", "instance_mappings"])
def test_a_hand_back_that_is_killed_while_it_writes_is_completed_by_the_next(taken: Canary, table: str) -> None:
    """Before its first write, and between the records of the cell and those of the API."""
    databases = taken.cloud.nova.databases
    database = databases[taken.cloud.nova.hosts[taken.host] if table == "instances" else "api"]
    row = {"uuid" if table == "instances" else "instance_uuid": taken.uuid}
    with held_rows.held(database, table, **row) as await_writer:
        command = taken.begin_hand_back()
        await_writer()
        command.kill()
    taken.check(CAUSEWAY)
    change(taken, "meanwhile")
    check_handed_back(taken)


@pytest.mark.parametrize(
    ("point", "left"), [("rpc.adopting.release.request", CAUSEWAY), ("rpc.adopting.release.reply", NOVA_STOPPED)]
)
def test_a_hand_back_that_is_killed_when_it_has_written_is_completed_by_the_next(
    taken: Canary, point: str, left: Owner
) -> None:
    with taken.held_at(point) as await_it:
        command = taken.begin_hand_back()
        await_it()
        # Nova's records are those of before.
        change(taken, "meanwhile")
        command.kill()
    taken.check(left)
    assert taken.state == "taken"
    check_handed_back(taken)


@pytest.mark.parametrize(
    ("point", "died", "then"),
    [("adopt.release.ended", CAUSEWAY_STOPPED, CAUSEWAY), ("adopt.release.unmarked", NOBODY, NOBODY)],
)
def test_a_hand_back_whose_compute_is_killed_is_completed_by_the_next(
    taken: Canary, point: str, died: Owner, then: Owner
) -> None:
    with taken.held_at(point) as await_it:
        command = taken.begin_hand_back()
        await_it()
        taken.compute.kill()
        command.kill()
    taken.check(died)
    taken.restart(taken.host)
    taken.check(then)
    change(taken, "meanwhile")
    check_handed_back(taken)


def check_handed_back(canary: Canary) -> None:
    """With the next command: Nova serves the host, and shows the server as we do."""
    canary.hand_back()
    canary.check(NOVA_STOPPED)
    canary.cloud.nova.start_compute(canary.host)
    canary.check(NOVA)
    with closing(canary.cloud.nova.connection()) as theirs:
        assert known(theirs, canary.uuid) == known(canary.adopted.admin, canary.uuid)


# nova-compute is started by mistake


def test_a_nova_compute_beside_ours_does_not_serve_and_closes_the_host_to_new_servers_until_it_ends(
    taken: Canary, populator: Populator
) -> None:
    cell = taken.cloud.nova.hosts[taken.host]
    check = f"{cell}: owners of hosts"
    taken.launch_nova_compute()
    taken.check(CAUSEWAY)
    found = until(lambda: taken.adopted.status()[check], lambda found: found[0] == "failure", check)
    assert f"{taken.host}: a nova-compute runs beside it" in found[1]
    with enabled(taken.adopted, cell):
        assert build(taken, populator).fault["code"] == 500
        taken.cloud.nova.kill_compute(taken.host)
        until(lambda: taken.adopted.status()[check][0], "success".__eq__, check)
        assert build(taken, populator).status == "ACTIVE"
    for server in taken.adopted.admin.compute.servers(name=BUILT):
        taken.adopted.admin.compute.delete_server(server, force=True)
        taken.adopted.admin.compute.wait_for_delete(server, wait=owners.PATIENCE)


def test_a_nova_compute_on_a_host_that_is_nobodys_does_not_serve_and_the_host_can_be_handed_back(
    canary: Canary,
) -> None:
    with canary.held_at("adopt.take.held") as await_it:
        command = canary.begin_take()
        await_it()
        command.kill()
        canary.compute.kill()
    canary.restart(canary.host)
    canary.launch_nova_compute()
    canary.check(NOBODY)
    said = canary.adopted.adopt("host", canary.host)
    assert said.returncode == 1 and "nova-compute" in said.stdout
    canary.check(NOBODY)
    # Else an import would write over what Causeway has recorded, and nothing could be handed back.
    assert canary.state == "taking"
    canary.cloud.nova.kill_compute(canary.host)
    check_handed_back(canary)


@contextmanager
def enabled(adopted: AdoptedCloud, cell: str) -> Iterator[None]:
    """The scheduler may choose hosts of the cell."""
    update = ("cell", "update", f"--config-file={adopted.directory}/databases.conf", cell)
    adopted.manage(*update, "--enable")
    try:
        yield
    finally:
        adopted.manage(*update, "--disable")


def build(canary: Canary, populator: Populator) -> Any:
    """A server that is to come to the host, when that has ended somehow."""
    compute = canary.adopted.admin.compute
    made = compute.create_server(
        name=BUILT,
        flavor_id="gen1.small",
        image_id=populator.image,
        networks=[{"uuid": populator.network}],
        availability_zone=f"nova:{canary.host}",
    )
    return until(
        lambda: compute.get_server(made),
        lambda found: found.status in ("ACTIVE", "ERROR") and found.task_state is None,
        "the server to be built",
        owners.PATIENCE,
    )
