"""What Placement, Neutron and Cinder know is compared with Nova's records; one that does not answer is not checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from causeway.adopt.check import CODES, Kind, Report
from causeway.clients import network, volume
from tests.unit.adopt.check.clean_cloud import ACTIVE, DATAVOL, NODES, PORT, VOLUME, CleanCloud, codes, instance, rows
from tests.unit.adopt.check.services_around import Around, served

STRANGER = "99999999-0000-4000-8000-000000000000"


@pytest.fixture
def around() -> Iterator[Around]:
    with served(Around(rows())) as made:
        yield made


def checked(tmp_path: Path, around: Around, cloud: CleanCloud | None = None) -> Report:
    cloud = cloud or CleanCloud(tmp_path)
    cloud.nova.conf.write_text(cloud.nova.conf.read_text() + around.conf())
    return cloud.check()


def not_checked(report: Report) -> set[str]:
    named = {each.what for each in report.not_checked}
    return named - {"Nova's policy", "Cells of Causeway", "Guests and files of 4 hosts"}


def test_services_that_agree_with_the_records_are_asked_and_nothing_is_found(tmp_path: Path, around: Around) -> None:
    report = checked(tmp_path, around)
    assert not_checked(report) == set()
    assert not report.is_blocked
    assert {each.partition("?")[0].split("/")[1] for each in around.asked} == {"placement", "network", "volume"}


def port(around: Around, **values: object) -> None:
    next(each for each in around.ports if each["id"] == PORT).update(
        {k.replace("__", ":"): v for k, v in values.items()}
    )


def attachment(around: Around, **values: object) -> None:
    next(each for each in around.attachments if each["volume_id"] == VOLUME).update(values)


@pytest.mark.parametrize(
    ("code", "subject", "change"),
    [
        ("provider_missing", "cell1-host1", lambda around: around.providers.pop(NODES["cell1-host1"])),
        ("allocation_missing", ACTIVE, lambda around: around.allocations[NODES["cell1-host1"]].remove(ACTIVE)),
        ("allocation_elsewhere", ACTIVE, lambda around: around.allocations[NODES["cell2-host1"]].add(ACTIVE)),
        ("allocation_orphaned", "cell1-host1", lambda around: around.allocations[NODES["cell1-host1"]].add(STRANGER)),
        ("port_missing", ACTIVE, lambda around: around.ports.clear()),
        ("port_missing", ACTIVE, lambda around: port(around, device_owner="network:dhcp")),
        ("port_host", ACTIVE, lambda around: port(around, binding__host_id="cell1-host2")),
        ("port_host", ACTIVE, lambda around: port(around, binding__host_id="")),
        ("port_plug", ACTIVE, lambda around: port(around, binding__vif_type="binding_failed")),
        ("port_plug", ACTIVE, lambda around: port(around, binding__vif_details={"macvtap_mode": "bridge"})),
        ("attachment_missing", DATAVOL, lambda around: around.attachments.clear()),
        ("attachment_of_another", DATAVOL, lambda around: attachment(around, instance=STRANGER)),
        ("attachment_of_another", DATAVOL, lambda around: attachment(around, volume_id=STRANGER)),
        ("attachment_disconnected", DATAVOL, lambda around: attachment(around, connection_info={})),
    ],
)
def test_what_a_service_knows_otherwise_is_found(
    tmp_path: Path, around: Around, code: str, subject: str, change: Callable[[Around], object]
) -> None:
    change(around)
    report = checked(tmp_path, around)
    assert codes(report, subject) == {code}
    assert {each.verdict for each in report.findings if each.code == code} == {CODES[code].verdict}


def test_a_port_of_another_project_with_a_servers_id_is_not_its(tmp_path: Path, around: Around) -> None:
    around.ports.append(
        {
            "id": STRANGER,
            "device_id": ACTIVE,
            "device_owner": "compute:nova",
            "project_id": "another",
            "binding:host_id": "elsewhere",
            "binding:vif_type": "ovs",
        }
    )
    assert codes(checked(tmp_path, around), ACTIVE) == set()


def test_a_port_of_another_project_that_is_recorded_is_looked_at(tmp_path: Path, around: Around) -> None:
    port(around, project_id="another", binding__host_id="elsewhere")
    assert codes(checked(tmp_path, around), ACTIVE) == {"port_host"}


def test_allocations_of_a_migration_are_not_orphaned(tmp_path: Path, around: Around) -> None:
    cloud = CleanCloud(tmp_path)
    (migration,) = [row for row in rows()["cell1"]["migrations"] if row["id"] == 1]
    around.allocations[NODES["cell1-host1"]].add(migration["uuid"])
    assert codes(checked(tmp_path, around, cloud), "cell1-host1") == set()


def test_a_server_without_a_host_has_no_place_to_compare(tmp_path: Path, around: Around) -> None:
    port(around, binding__host_id="")
    around.allocations[NODES["cell1-host1"]].remove(ACTIVE)
    away = {"host": None, "node": None, "compute_id": None, "vm_state": "shelved_offloaded"}
    cloud = CleanCloud(tmp_path, lambda content: instance(content).update(away))
    assert codes(checked(tmp_path, around, cloud), ACTIVE) == set()


@pytest.mark.parametrize(("path", "what"), [("placement", "Placement"), ("network", "Neutron"), ("volume", "Cinder")])
@pytest.mark.parametrize("status", [403, 404, 503])
def test_a_service_that_does_not_answer_is_not_checked(
    tmp_path: Path, around: Around, path: str, what: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causeway.clients.session.FIRST_PAUSE_SECONDS", 0.01)
    around.broken[path] = status
    report = checked(tmp_path, around)
    assert not_checked(report) == {what}
    assert not report.is_blocked


@pytest.mark.parametrize("name", ["ports", "attachments"])
def test_an_answer_that_is_not_understood_is_not_checked(tmp_path: Path, around: Around, name: str) -> None:
    setattr(around, name, [{"id": "x"}])
    assert not_checked(checked(tmp_path, around)) == {"Neutron" if name == "ports" else "Cinder"}


def test_without_accounts_nothing_is_asked(tmp_path: Path, around: Around) -> None:
    report = CleanCloud(tmp_path).check()
    assert not_checked(report) == {"Placement", "Neutron", "Cinder"}
    assert around.asked == []


def test_an_account_of_a_kind_that_is_not_known_is_not_checked(tmp_path: Path) -> None:
    cloud = CleanCloud(tmp_path)
    cloud.nova.conf.write_text(cloud.nova.conf.read_text() + "[placement]\nauth_type = no_such_kind\n")
    assert "Placement" in not_checked(cloud.check())


def test_ports_and_attachments_come_page_by_page(
    tmp_path: Path, around: Around, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "PAGE_SIZE", 2)
    monkeypatch.setattr(volume, "PAGE_SIZE", 1)
    report = checked(tmp_path, around)
    assert not report.is_blocked
    assert sum("/ports" in each for each in around.asked) == len(around.ports) // 2 + 1
    assert sum("/attachments" in each for each in around.asked) == len(around.attachments) + 1


def test_kinds_of_what_services_are_found_to_know_are_those_of_their_codes(tmp_path: Path, around: Around) -> None:
    around.allocations = {uuid: {STRANGER} for uuid in NODES.values()}
    around.ports.clear()
    report = checked(tmp_path, around)
    assert {each.subject.kind for each in report.findings if each.code == "allocation_orphaned"} == {Kind.HOST}
    assert {each.subject.kind for each in report.findings if each.code == "port_missing"} == {Kind.SERVER}
