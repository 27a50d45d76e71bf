"""``causeway manage status``: what is wrong, and Nova's exit statuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from causeway.cli import status
from causeway.cli.main import cli
from causeway.cli.status import Finding, Level, together
from causeway.clients import reach
from causeway.conf import new_config
from causeway.model import versions
from causeway.model.certificates import CERTIFICATES_ENDING, CertificateEnd
from causeway.model.host import CELL0_UUID, CellMapping, ComputeNode
from causeway.model.operations import Operation
from causeway.model.sagas import SagaState
from causeway.store import schema
from causeway.store.api import cells, journal
from causeway.store.cell import hosts
from causeway.store.database import Database, utcnow

CELL1 = "11111111-1111-1111-1111-111111111111"
NODE = ComputeNode("22222222-2222-2222-2222-222222222222", "host1", "host1", "QEMU", 1, 1, 1, 1)
Status = Callable[[], dict[str, tuple[str, str]]]


@pytest.fixture
def api(tmp_path: Path) -> Database:
    """A cloud with cell0 and cell1, in which a host is up; no service around is configured."""
    database = Database(f"sqlite:///{tmp_path}/api.sqlite", "the API")
    schema.sync(database, "api")
    for name, uuid in (("cell0", CELL0_UUID), ("cell1", CELL1)):
        url = f"sqlite:///{tmp_path}/{name}.sqlite"
        cell = Database(url, name)
        schema.sync(cell, "cell")
        cells.save_cell(database, CellMapping(uuid, name, f"causeway-memory://{tmp_path.name}-{name}", url))
    hosts.save_node(cell, NODE)
    hosts.report_service(cell, "host1", "nova-compute", "compute", versions.SERVICE)
    cells.map_host(database, "host1", CELL1)
    return database


@pytest.fixture
def cell1(api: Database, tmp_path: Path) -> Database:  # noqa: ARG001 - it has made the database
    return Database(f"sqlite:///{tmp_path}/cell1.sqlite", "cell1")


@pytest.fixture
def checked(api: Database, tmp_path: Path) -> Status:  # noqa: ARG001 - it has made the databases
    """Check -> (level, details)."""
    options = tmp_path / "causeway.conf"
    (tmp_path / "policy.yaml").write_text("{}")
    options.write_text(
        f"[DEFAULT]\ntransport_url = causeway-memory://{tmp_path.name}\n[api_database]\nconnection = sqlite:///{tmp_path}/api.sqlite\n"
        # Not the policy of this machine, if it has one.
        f"[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\n"
    )

    def run() -> dict[str, tuple[str, str]]:
        result = CliRunner().invoke(cli, ["manage", "status", "--json", f"--config-file={options}"])
        found = json.loads(result.stdout)
        # Nothing around is configured.
        assert (result.exit_code, found["status"]) == (2, "failure")
        return {each["check"]: (each["level"], each["details"]) for each in found["checks"]}

    return run


def test_what_is_well_and_what_is_not_configured(checked: Status) -> None:
    found = checked()
    for check in (
        "API database",
        "cells",
        "cell0: database",
        "cell1: database",
        "cell1: queue",
        "cell1: computes",
        "moves",
    ):
        assert found[check][0] == "success", (check, found[check])
    assert found["cell1: host mappings"] == ("success", "1 hosts")
    assert found["moves between cells"][0] == "warning"
    assert found["queue of the cloud"][0] == "success"
    assert found["placement"] == ("failure", "[placement] auth_type is not set")


def test_a_host_that_reports_the_node_of_another_cell_is_a_failure(
    checked: Status, api: Database, cell1: Database
) -> None:
    uuid = NODE.uuid.replace("2", "3")
    hosts.save_node(cell1, replace(NODE, uuid=uuid, host="rogue", hypervisor_hostname="rogue"))
    cells.map_host(api, "victim", CELL0_UUID, uuid)
    level, details = checked()["cell1: host mappings"]
    assert level == "failure" and "rogue" in details and "causeway audit" in details


def test_a_schema_that_is_older_or_newer_is_reported(checked: Status, cell1: Database) -> None:
    for revision, level, says in (("0008", "failure", "db sync"), ("9999", "warning", "newer")):
        with cell1.write() as connection:
            connection.execute(sa.text(f"UPDATE alembic_version SET version_num = '{revision}'"))
        assert checked()["cell1: database"][0] == level
        assert says in checked()["cell1: database"][1]


def test_what_hosts_lack_for_live_migrations_is_a_warning(checked: Status, cell1: Database) -> None:
    def says(host: str, **capabilities: object) -> None:
        uuid = f"{host[-1]}{NODE.uuid[1:-1]}f"
        hosts.save_node(cell1, replace(NODE, uuid=uuid, host=host, hypervisor_hostname=host, capabilities=capabilities))

    # Nothing is asked of one that can't do it.
    assert checked()["cell1: live migration"] == ("success", "0 hosts have what it needs; 1 can't")
    says("host2", supports_live_migration=True)
    says("host3", supports_live_migration=True, live_migration_lacks=[])
    assert checked()["cell1: live migration"] == (
        "success",
        "1 hosts have what it needs; 1 have not said yet: host2; 1 can't",
    )
    says("host2", supports_live_migration=True, live_migration_lacks=["it does not listen", "it waits too long"])
    assert checked()["cell1: live migration"] == ("warning", "host2: it does not listen; it waits too long")


def test_a_host_that_can_not_write_its_disks_is_a_failure(checked: Status, cell1: Database) -> None:
    assert checked()["cell1: folders of disks"] == ("success", "1 hosts can write theirs")
    lack = {"folders_lack": "/disks can't be written: Read-only file system"}
    hosts.save_node(cell1, replace(NODE, capabilities=lack))
    level, says = checked()["cell1: folders of disks"]
    assert level == "failure" and "/disks can't be written: Read-only file system" in says


def test_a_host_that_may_have_another_owner_is_a_failure(checked: Status, cell1: Database) -> None:
    assert checked()["cell1: owners of hosts"] == ("success", "1 hosts know of no other")
    hosts.save_node(cell1, replace(NODE, capabilities={"other_owner": "a nova-compute runs beside it"}))
    level, says = checked()["cell1: owners of hosts"]
    assert level == "failure" and "a nova-compute runs beside it" in says


def test_storage_that_only_one_host_has_is_a_warning(checked: Status, cell1: Database) -> None:
    def says(host: str, storage: str | None) -> None:
        node = replace(NODE, uuid=f"{host[-1]}{NODE.uuid[1:-1]}f", host=host, hypervisor_hostname=host)
        hosts.save_node(cell1, replace(node, capabilities={"storage": storage}))

    assert checked()["shared storage"] == ("success", "no host has any")
    says("host2", "rbd:one/vms")
    level, details = checked()["shared storage"]
    assert level == "warning" and "rbd:one/vms only host2" in details
    says("host3", "rbd:one/vms")
    assert checked()["shared storage"] == ("success", "2 hosts share rbd:one/vms, 1 have their own disks")


def test_certificates_that_end_soon_are_a_warning_and_expired_ones_a_failure(checked: Status, cell1: Database) -> None:
    now = datetime.now(UTC)

    def says(host: str, **ends: timedelta) -> None:
        uuid = f"{host[-1]}{NODE.uuid[1:-1]}f"
        reported = [CertificateEnd(f"/pki/{name}.pem", "gen1", now + left).report() for name, left in ends.items()]
        node = replace(NODE, uuid=uuid, host=host, hypervisor_hostname=host)
        hosts.save_node(cell1, replace(node, capabilities={CERTIFICATES_ENDING: reported}))

    # Hosts of release 0.1.0, and those that have just started.
    assert checked()["cell1: certificates"] == (
        "success",
        "none of 0 hosts expires soon; 1 have not said yet: host1",
    )
    says("host2")
    assert checked()["cell1: certificates"][1].startswith("none of 1 hosts expires soon")
    says("host2", server=timedelta(days=5, hours=1))
    level, details = checked()["cell1: certificates"]
    assert (level, details.count("\n")) == ("warning", 0)
    assert details.startswith("host2: /pki/server.pem: the certificate of gen1 expires in 5 days, on ")
    says("host3", ca=timedelta(days=-1, hours=-1))
    level, details = checked()["cell1: certificates"]
    assert level == "failure"
    assert "host3: /pki/ca.pem: the certificate of gen1 expired 1 day ago, on " in details.splitlines()[1]


def test_orders_and_reports_that_nobody_signed_are_a_warning_on_rabbitmq(checked: Status, tmp_path: Path) -> None:
    only_rabbit = ("success", "only RabbitMQ needs signatures")
    found = checked()
    assert found["cell1: signed orders"] == found["signed messages"] == only_rabbit

    # The queue itself is not asked.
    rabbit = "rabbit://causeway:secret@127.0.0.1:1/cell1"
    cell, signing = CellMapping(CELL1, "cell1", rabbit, ""), replace(NODE, capabilities={"requires_signatures": True})
    assert status._signed_orders(cell, [NODE, signing]) == (
        Level.WARNING,
        "1 of 2 hosts carry out what nobody signed, so orders of any other host: host1",
    )
    assert status._signed_orders(cell, [signing]) == (Level.SUCCESS, "1 hosts refuse orders that nobody signed")

    def signed(**options: object) -> tuple[Level, str]:
        return status._signed(new_config(transport_url=rabbit, rpc_signatures=options), ["host1"])

    assert signed()[0] is Level.WARNING and "not required here" in signed()[1]
    for arguments in (["control", "conductor1"], ["host", "elsewhere"]):
        made = CliRunner().invoke(cli, ["manage", "queue", "make-key", *arguments, f"--directory={tmp_path}"])
        assert made.exit_code == 0, made.output
    options = {"required": True, "trusted_keys": f"{tmp_path}/trusted"}
    assert signed(**options)[0] is Level.FAILURE
    options["private_key"] = f"{tmp_path}/private/control/conductor1.pem"
    assert signed(**options) == (Level.WARNING, "reports of 1 hosts are refused, whose key is not trusted: host1")
    (tmp_path / "trusted/hosts/elsewhere.pem").rename(tmp_path / "trusted/hosts/host1.pem")
    assert signed(**options) == (Level.SUCCESS, "required; trusted: 1 hosts, 1 of the control plane")


def test_a_cell_that_does_not_answer(checked: Status, api: Database, tmp_path: Path) -> None:
    (broken,) = (cell for cell in cells.list_cells(api) if cell.uuid == CELL1)
    broken.database_connection = f"sqlite:///{tmp_path}/no/such/directory.sqlite"
    cells.save_cell(api, broken)
    found = checked()
    assert found["cell1: database"][0] == found["cell1: computes"][0] == "failure"
    assert found["cell0: database"][0] == "success"


def test_computes_that_are_down_or_old_are_reported(checked: Status, cell1: Database) -> None:
    hosts.report_service(cell1, "host2", "nova-compute", "compute", versions.SERVICE - 1)
    assert checked()["cell1: computes"][0] == "warning"
    (service,) = hosts.list_services(cell1, host="host2")
    hosts.update_service(cell1, service.uuid, forced_down=True)
    assert checked()["cell1: computes"] == (
        "warning",
        f"1 of version {versions.SERVICE - 1}, 1 of version {versions.SERVICE}; 1 down: host2",
    )
    (service,) = hosts.list_services(cell1, host="host1")
    hosts.update_service(cell1, service.uuid, forced_down=True)
    assert checked()["cell1: computes"][0] == "failure"


def test_missing_conductors_of_the_cloud_and_of_cells_are_reported(
    checked: Status, cell1: Database, tmp_path: Path
) -> None:
    assert checked()["conductors"] == ("failure", "none is up")
    assert checked()["cell1: conductors"] == ("success", "none of its own: super conductors take its reports")
    cell0 = Database(f"sqlite:///{tmp_path}/cell0.sqlite", "cell0")
    for host in ("one", "two"):
        hosts.report_service(cell0, host, "nova-conductor", "conductor", 1)
    hosts.report_service(cell1, "near", "nova-conductor", "cell_conductor", 1)
    assert checked()["conductors"] == ("success", "2 up")
    assert checked()["cell1: conductors"] == ("success", "1 up")
    for database, host in ((cell0, "two"), (cell1, "near")):
        (service,) = hosts.list_services(database, host=host)
        hosts.update_service(database, service.uuid, last_seen_up=utcnow() - timedelta(hours=1))
    assert checked()["conductors"] == ("warning", "1 up, 1 down: two")
    assert checked()["cell1: conductors"] == ("failure", "none is up: near")


def test_wrong_host_mappings_are_a_warning(checked: Status, api: Database) -> None:
    cells.map_host(api, "host9", CELL1)
    assert checked()["cell1: host mappings"] == ("warning", "mapped, but have no compute node there: host9")
    cells.unmap_host(api, "host1")
    assert "discover-hosts" in checked()["cell1: host mappings"][1]


def test_moves_that_are_stuck_or_left(checked: Status, api: Database) -> None:
    move = Operation(
        id="33333333-3333-3333-3333-333333333333",
        migration_uuid="m",
        instance_uuid="s",
        recipe="resize",
        state=SagaState.STUCK,
    )
    with api.write() as connection:
        journal.insert_in(connection, move)
    assert checked()["moves"][0] == "warning"
    with api.write() as connection:
        old = utcnow() - timedelta(hours=1)
        connection.execute(journal.OPERATIONS.update().values(state=SagaState.RUNNING.value, lease_until=old))
    assert checked()["moves"][0] == "failure"


@pytest.mark.parametrize(
    ("roles", "level"),
    [({"service"}, Level.SUCCESS), ({"admin"}, Level.WARNING), (None, Level.FAILURE)],
)
def test_an_account_that_may_not_write_profiles_of_ports_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, roles: set[str] | None, level: Level
) -> None:
    monkeypatch.setattr(reach, "roles_of", lambda _sessions, group: roles if group == "neutron" else set())
    assert status._profiles(SimpleNamespace(sessions=None))[0] is level  # type: ignore[arg-type]


def test_the_worst_finding_is_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def exit_status(*levels: Level) -> int:
        findings = [Finding("check", level, "details") for level in levels]
        monkeypatch.setattr(status, "run", lambda *_: findings)
        return CliRunner().invoke(cli, ["manage", "status"]).exit_code

    assert exit_status(Level.SUCCESS) == 0
    assert exit_status(Level.SUCCESS, Level.WARNING) == 1
    assert exit_status(Level.FAILURE, Level.WARNING) == 2


def test_an_unexpected_error_exits_with_255(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        raise RuntimeError("this")

    monkeypatch.setattr(status, "run", run)
    result = CliRunner().invoke(cli, ["manage", "status"])
    assert result.exit_code == 255 and "this" in result.stderr


def test_a_check_that_hangs_holds_up_nobody() -> None:
    over = threading.Event()

    def hang() -> tuple[Level, str]:
        over.wait(60)
        return Level.SUCCESS, ""

    found = together({"hangs": hang, "fine": lambda: (Level.SUCCESS, "")}, 1.0)
    over.set()
    # Whoever waits for it hears of a success.
    assert [each.level for each in found] == [Level.FAILURE, Level.SUCCESS]
