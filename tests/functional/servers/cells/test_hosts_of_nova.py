"""A host that Nova had is looked at, taken and released; no order reaches it before, and its guests notice nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from causeway import errors
from causeway.adopt.hosts import nova_services, records, taking
from causeway.adopt.hosts.nova_services import NovaService
from causeway.adopt.hosts.taking import AdoptServices, adopt_hosts, end_service, note_released
from causeway.cli.main import cli
from causeway.compute.adopting.ownership import HELD, IDENTITY
from causeway.compute.adopting.service import AdoptingService
from causeway.context import admin_context
from causeway.hosts import adoption
from causeway.model.adoption import AdoptedHost, HostState
from causeway.model.found_host import NovaProcess
from causeway.model.states import PowerState
from causeway.roles.compute import make_adopting_compute
from causeway.rpc.adopting import AdoptingClient
from causeway.rpc.compute import ComputeClient
from causeway.store.api import adopted_hosts
from causeway.store.cell import hosts, instances
from causeway.store.cells import Cells
from causeway.virt.simulated import look as simulated_look
from tests.functional.servers.broken_hosts import start
from tests.functional.servers.moves_cloud import Cloud, until
from tests.unit.adopt.nova_cloud import NovaOnDisk

HOST = "cell1-host1"
CLOUD: dict[str, Any] = {"hosts_per_cell": 1, "overrides": {"DEFAULT": {"rpc_response_timeout": 5}}}
SEEN = datetime(2026, 11, 28, 3, 0)


class NovaHost:
    """The host as it was when it was Nova's: its guests run, its compute service only looks."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        self.cloud, self.nova = cloud, folder
        self.embedded = cloud.embedded
        self.state = self.embedded.state.host(HOST)
        self.embedded.computes[HOST].stop()
        (self.state / IDENTITY).rename(self.nova / IDENTITY)
        (cell,) = [each for each in self.embedded.cells.mappings() if each.name == "cell1"]
        self.cell = cell
        self.database = self.embedded.cells.database(cell.uuid)
        self.processes: list[NovaProcess] = []
        self.services = AdoptServices(
            self.embedded.cells,
            lambda cell: AdoptingClient(self.embedded.around.transports.get(cell.transport_url)),
            placement=self.embedded.around.placement,
        )
        self.service = self.new_service()
        self.service.start()

    def new_service(self) -> AdoptingService:
        return make_adopting_compute(
            self.embedded.around_of_hosts,
            HOST,
            partial(self.embedded.hosts.driver, HOST),
            self.cell.transport_url,
            self.state,
            look=partial(simulated_look.look, HOST, self.state),
            nova_folders=[self.nova],
            processes=lambda: list(self.processes),
        )

    def restart(self) -> None:
        """The process of the host's compute service ends, and is started again."""
        self.service.stop()
        self.service = self.new_service()
        self.service.start()

    def adopt(self, *, take: bool = True) -> AdoptedHost:
        (adopted,) = adopt_hosts(self.services, [HOST], take=take)
        assert adopted_hosts.find(self.embedded.api_database, HOST) == adopted
        return adopted

    @property
    def last_report(self) -> datetime | None:
        (service,) = hosts.list_services(self.database, host=HOST, binary="nova-compute")
        return service.last_seen_up

    @property
    def is_novas(self) -> bool:
        return (self.nova / IDENTITY).exists() and not (self.nova / HELD).exists() and not self.service.is_owner


@pytest.fixture
def server(cloud: Cloud) -> Any:
    made = cloud.boot()
    volume = cloud.volume()
    cloud.attach(made, volume)
    return made


@pytest.fixture
def nova(cloud: Cloud, server: Any, tmp_path: Path) -> Iterator[NovaHost]:  # noqa: ARG001 - it is there before
    found = NovaHost(cloud, tmp_path)
    yield found
    found.processes.clear()
    found.service.stop()
    # As if Nova had never been there.
    with found.embedded.api_database.write() as connection:
        connection.execute(adopted_hosts.TABLE.delete())
    (found.state / "taken").unlink(missing_ok=True)
    for file in tmp_path.glob(f"{IDENTITY}*"):
        file.rename(found.state / IDENTITY)
    start(found.embedded, HOST)


def blocking(adopted: AdoptedHost) -> set[str]:
    return {finding.kind for finding in adopted.findings if finding.blocks}


def released(services: AdoptServices) -> AdoptedHost:
    end_service(services, HOST)
    (adopted,) = note_released(services, [HOST])
    return adopted


def test_a_host_that_only_looks_takes_no_order_and_reports_nothing(nova: NovaHost, server: Any) -> None:
    before = nova.last_report
    computes = ComputeClient(nova.embedded.around.transports.get(nova.cell.transport_url))
    with pytest.raises(errors.RpcTimeout):
        computes.list_host(admin_context(), HOST)
    looked = nova.adopt(take=False)
    assert (looked.state, looked.findings) == (HostState.LOOKED, [])
    assert nova.last_report == before and nova.is_novas
    found = AdoptingClient(nova.embedded.around.transports.get(nova.cell.transport_url)).look(admin_context(), HOST)
    (guest,) = found.hypervisor.guests
    assert (guest.uuid, guest.power_state) == (server.id, PowerState.RUNNING)


def test_a_taken_host_carries_out_orders_and_its_guest_ran_on(nova: NovaHost, cloud: Cloud, server: Any) -> None:
    before = nova.last_report
    taken = nova.adopt()
    assert (taken.state, blocking(taken)) == (HostState.TAKEN, set())
    assert nova.service.is_owner and (nova.nova / HELD).exists() and not (nova.nova / IDENTITY).exists()
    assert nova.last_report != before
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    cloud.member.compute.start_server(server.id)
    cloud.wait(server, "ACTIVE")
    cloud.resized(server)
    cloud.reverted(server)
    # Once more: what is so already is a success.
    assert nova.adopt().state is HostState.TAKEN
    nova.restart()
    assert nova.service.is_owner
    assert nova.adopt(take=False).state is HostState.TAKEN


def test_a_command_that_died_after_the_host_was_taken_is_run_again(
    nova: NovaHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = adopted_hosts.save

    def die(database: Any, adopted: AdoptedHost) -> None:
        if adopted.state is HostState.TAKEN:
            raise SystemExit
        save(database, adopted)

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(adopted_hosts, "save", die)
        nova.adopt()
    known = adopted_hosts.find(nova.embedded.api_database, HOST)
    assert known is not None and known.state is HostState.TAKING and nova.service.is_owner
    # Nothing is imported over it.
    assert adopted_hosts.owned(nova.embedded.api_database) == {HOST}
    assert nova.adopt().state is HostState.TAKEN


def test_a_take_that_fails_says_whose_the_host_is(nova: NovaHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """A nova-compute is started between the look and the take."""
    look, calls = AdoptingClient.look, list[str]()

    def look_and_start(client: AdoptingClient, *given: Any) -> Any:
        found = look(client, *given)
        nova.processes.append(NovaProcess(17, "nova-compute"))
        calls.append("look")
        return found

    monkeypatch.setattr(AdoptingClient, "look", look_and_start)
    adopted = nova.adopt()
    assert (adopted.state, blocking(adopted)) == (HostState.LOOKED, {"take.failed"}) and nova.is_novas
    assert len(calls) == 2


def test_a_host_that_is_nobody_s_may_be_causeway_s_until_it_is_taken_or_released(
    nova: NovaHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its service died in the middle of a take, and a nova-compute was started, which did not find its identity."""
    (nova.nova / IDENTITY).rename(nova.nova / HELD)
    api = nova.embedded.api_database
    nova.processes.append(NovaProcess(17, "nova-compute"))
    for take in (False, True):
        seen = nova.adopt(take=take)
        assert (seen.state, "nova.runs" in blocking(seen)) == (HostState.TAKING, take)
        # Nothing is imported over its records, and it can be handed back.
        assert adopted_hosts.owned(api) == {HOST}
    with monkeypatch.context() as patch:
        patch.setattr(taking, "running", lambda _found: [])
        refused = nova.adopt()
    assert (refused.state, blocking(refused)) == (HostState.TAKING, {"take.failed"})
    nova.processes.clear()
    assert nova.adopt().state is HostState.TAKEN and nova.service.is_owner


def test_a_host_whose_hand_back_died_is_causeway_s_until_it_is_repeated(nova: NovaHost) -> None:
    """Its service was released, and Nova's records may lack what changed meanwhile."""
    nova.adopt()
    end_service(nova.services, HOST)
    assert nova.is_novas
    nova.processes.append(NovaProcess(17, "nova-compute"))
    for take in (False, True):
        assert nova.adopt(take=take).state is HostState.TAKEN
        assert adopted_hosts.owned(nova.embedded.api_database) == {HOST} and nova.is_novas
    nova.processes.clear()
    assert nova.adopt().state is HostState.TAKEN and nova.service.is_owner


def test_an_import_notes_hosts_and_changes_none_that_is_known(nova: NovaHost) -> None:
    nova.adopt()
    api = nova.embedded.api_database
    for _ in range(2):
        with api.write() as connection:
            adopted_hosts.note_imported_in(connection, {HOST: nova.cell.uuid, "cell1-host9": nova.cell.uuid})
    known = {adopted.host: adopted.state for adopted in adopted_hosts.all_hosts(api)}
    assert known == {HOST: HostState.TAKEN, "cell1-host9": HostState.IMPORTED}


def test_a_host_that_differs_from_its_records_stays_nova_s(nova: NovaHost, server: Any) -> None:
    instances.update(nova.database, server.id, network_info=[])
    refused = nova.adopt()
    assert (refused.state, blocking(refused)) == (HostState.LOOKED, {"port.unknown"}) and nova.is_novas
    (cell, _other) = adoption.read(nova.embedded.cells)
    (found,) = cell.hosts
    assert (found.host, found.state, found.servers) == (HOST, HostState.LOOKED, 1)
    assert [finding.kind for finding in found.blocking] == ["port.unknown"]


def test_a_host_where_nova_compute_runs_stays_nova_s(nova: NovaHost) -> None:
    nova.processes.append(NovaProcess(17, "nova-compute"))
    assert blocking(nova.adopt()) == {"nova.runs"} and nova.is_novas
    node = nova.embedded.placement.client().list_providers(name=HOST)[0].uuid
    # Whoever calls the host without looking is refused, too.
    client = AdoptingClient(nova.embedded.around.transports.get(nova.cell.transport_url))
    with pytest.raises(errors.Conflict, match="nova-compute runs"):
        client.take(admin_context(), HOST, node_uuid=node, guests=[])
    nova.processes.clear()
    with pytest.raises(errors.Conflict, match="other guests"):
        client.take(admin_context(), HOST, node_uuid=node, guests=[])
    assert nova.is_novas


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        ([NovaService(66, SEEN)], [NovaService(66, SEEN)], None),
        ([NovaService(66, SEEN)], [NovaService(66, SEEN + timedelta(seconds=10))], "nova.reports"),
        ([NovaService(64, SEEN)], [NovaService(64, SEEN)], "nova.old"),
        ([], [], "nova.services"),
    ],
)
def test_nova_s_records_say_whether_its_service_is_off(
    before: list[NovaService], now: list[NovaService], kind: str | None
) -> None:
    found = {finding.kind: finding.blocks for finding in nova_services.compare(HOST, before, now)}
    assert found == ({} if kind is None else {kind: True})


def test_a_host_whose_service_still_reports_to_nova_stays_nova_s(nova: NovaHost) -> None:
    seen = iter([SEEN, SEEN + timedelta(seconds=10)])
    nova.services.nova, nova.services.quiet_seconds = lambda _host: [NovaService(66, next(seen))], 0.0
    assert blocking(nova.adopt()) == {"nova.reports"} and nova.is_novas
    nova.services.nova = lambda _host: [NovaService(66, SEEN)]
    assert nova.adopt().state is HostState.TAKEN


def test_a_released_host_only_looks_and_can_be_taken_again(nova: NovaHost, cloud: Cloud, server: Any) -> None:
    nova.adopt()
    assert released(nova.services).state is HostState.RELEASED and nova.is_novas
    assert released(nova.services).state is HostState.RELEASED
    nova.restart()
    assert nova.is_novas
    assert nova.adopt().state is HostState.TAKEN
    cloud.member.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")


def test_a_host_is_not_released_while_an_operation_is_under_way(nova: NovaHost, cloud: Cloud, server: Any) -> None:
    nova.adopt()
    # Its conductor waits for the answer.
    cloud.lose("prep_snapshot_based_resize_at_source")
    cloud.member.compute.resize_server(server.id, "gen2.small")
    until(
        lambda: adopted_hosts.operations_on(nova.embedded.api_database, HOST, set()),
        lambda found: bool(found),
        "the resize to reach the host",
    )
    with pytest.raises(errors.Conflict, match="operations run"):
        end_service(nova.services, HOST)
    assert nova.service.is_owner
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.reverted(server)
    assert released(nova.services).state is HostState.RELEASED


@pytest.mark.expects_errors("nova-compute runs")
def test_a_nova_compute_that_appears_beside_the_owner_closes_the_host(
    nova: NovaHost, caplog: pytest.LogCaptureFixture
) -> None:
    nova.adopt()
    nova.processes.append(NovaProcess(17, "nova-compute"))
    nova.service.watch()
    assert "nova-compute runs beside it" in caplog.text

    def reason() -> Any:
        (node,) = hosts.list_nodes(nova.database, host=HOST)
        return node.capabilities["other_owner"]

    assert "process 17" in reason()
    owned: Any = nova.service._owned
    with pytest.raises(errors.ClaimRefused, match="takes no servers"):
        owned.host.require_open()
    # A process that starts then does not own the host.
    nova.restart()
    assert not nova.service.is_owner and "only looks" in caplog.text
    seen = nova.adopt(take=False)
    assert (seen.state, blocking(seen)) == (HostState.TAKEN, {"nova.runs"})
    assert blocking(nova.adopt()) == {"nova.runs", "take.failed"} and not nova.service.is_owner
    nova.processes.clear()
    assert blocking(nova.adopt()) == set() and nova.service.is_owner
    nova.restart()
    assert nova.service.is_owner and reason() is None


def test_a_host_that_can_not_be_compared_stays_nova_s(nova: NovaHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_given: Any) -> Any:
        raise errors.DatabaseFailed("The database of cell1 is unreachable.")

    with monkeypatch.context() as patch:
        patch.setattr(records, "read", fail)
        assert blocking(nova.adopt()) == {"records.unread"} and nova.is_novas
    assert nova.adopt().state is HostState.TAKEN


def test_a_host_whose_service_does_not_answer_is_said_to_be_silent(nova: NovaHost) -> None:
    nova.service.stop()
    silent = nova.adopt()
    assert blocking(silent) == {"host.silent"} and (nova.nova / IDENTITY).exists()
    with pytest.raises(errors.NotFound):
        list(adopt_hosts(nova.services, [HOST, "nobody"]))


class Commands:
    """``causeway adopt`` with the databases and queues of the cloud."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        parts = cloud.embedded
        self._options = folder / "causeway.conf"
        self._options.write_text(
            f"[DEFAULT]\ntransport_url = {parts.around.conf.transport_url}\n"
            f"[api_database]\nconnection = {parts.state.database('api')}\n"
        )

    def __call__(self, *words: str) -> Result:
        return CliRunner().invoke(cli, ["adopt", *words, f"--config-file={self._options}"], env={"COLUMNS": "200"})


def nova_of(cells: Cells, folder: Path) -> NovaOnDisk:
    """The databases of a Nova with the same cells, that knows no server."""
    mappings = [
        {"id": number, "uuid": cell.uuid, "name": cell.name, "database_connection": ""}
        for number, cell in enumerate(cells.mappings(), 1)
    ]
    return NovaOnDisk(folder, {"api": {"cell_mappings": mappings}, **{cell.name: {} for cell in cells.mappings()}})


def test_the_commands_look_at_a_cell_take_it_and_hand_a_host_back(nova: NovaHost, cloud: Cloud, tmp_path: Path) -> None:
    run = Commands(cloud, tmp_path)
    looked = run("host", HOST, "--only-look", "--json")
    assert looked.exit_code == 0, looked.output
    assert [each["state"] for each in json.loads(looked.output)] == ["looked"]
    taken = run("host", "--cell", "cell1", "--at-a-time", "2")
    assert taken.exit_code == 0 and f"{HOST}: taken" in taken.output and "nova.unasked" in taken.output
    shown = run("status")
    assert shown.exit_code == 0 and "taken" in shown.output
    (cell1, cell2) = json.loads(run("status", "--json").output)
    assert [(each["host"], each["state"], each["servers"]) for each in cell1["hosts"]] == [(HOST, "taken", 1)]
    assert [each["state"] for each in cell2["hosts"]] == [None]
    nova_config = f"--nova-config={nova_of(nova.services.cells, tmp_path).conf}"
    planned = run("hand-back", HOST, nova_config, "--dry-run")
    assert planned.exit_code == 0 and "servers: 1 made, 0 changed" in planned.output and not nova.is_novas
    released = run("hand-back", HOST, nova_config)
    assert released.exit_code == 0 and f"Nova's again: {HOST}" in released.output and nova.is_novas
    again = run("hand-back", HOST, nova_config)
    assert again.exit_code == 1 and "Not Causeway's" in again.output
    nova.processes.append(NovaProcess(17, "nova-compute"))
    refused = run("host", HOST)
    assert refused.exit_code == 1 and "blocks nova.runs" in refused.output
    assert run("host").exit_code == 2 and run("host", HOST, "--cell", "cell1").exit_code == 2
    unknown = run("host", "--cell", "none")
    assert unknown.exit_code == 1 and "no cell none" in unknown.output


def test_a_host_can_look_at_itself_without_any_service(nova: NovaHost, tmp_path: Path) -> None:
    options = tmp_path / "host.conf"
    options.write_text(
        f"[DEFAULT]\nhost = {HOST}\ncompute_driver = simulated\nstate_path = {nova.embedded.state.path}\n"
        f"[adopt]\nnova_state_path = {nova.nova}\n"
    )
    shown = CliRunner().invoke(cli, ["adopt", "look", f"--config-file={options}"])
    assert shown.exit_code == 0, shown.output
    assert f"{HOST}: not taken" in shown.output and "running" in shown.output
    found = json.loads(CliRunner().invoke(cli, ["adopt", "look", f"--config-file={options}", "--json"]).output)
    assert len(found["hypervisor"]["guests"][0]["disks"]) == 2 and not found["is_taken"]
    options.write_text(f"[DEFAULT]\nhost = {HOST}\n")
    assert CliRunner().invoke(cli, ["adopt", "look", f"--config-file={options}"]).exit_code == 1
