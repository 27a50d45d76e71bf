"""A host's reports: what can't be done beside them does not keep the host from being up."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from causeway import errors
from causeway.compute.host.claims import Claims
from causeway.compute.host.disk_work import DiskWork
from causeway.compute.host.failed_builds import FailedBuilds
from causeway.compute.upkeep.certificate_ends import CertificateWatch
from causeway.compute.upkeep.report import Reporter
from causeway.conf import new_config
from causeway.hardware.fit import Limits
from causeway.model.outcomes import HostReport
from causeway.virt.lab.certificates import Authority
from causeway.virt.simulated import SimulatedDriver

SERVER, OTHER = (str(uuid.uuid4()) for _number in range(2))


class Ended(BaseException):
    """Enough was seen."""


@dataclass
class Conductor:
    """Takes reports, and can't say what servers hold."""

    failure: Exception
    reports: list[HostReport] = field(default_factory=list)
    asked: list[list[str]] = field(default_factory=list)

    patience: list[float | None] = field(default_factory=list)

    def report_host(self, _context: Any, *, report: HostReport, timeout: float | None) -> bool:
        self.reports.append(report)
        self.patience.append(timeout)
        return True

    def recorded_claims(self, _context: Any, *, host: str, instance_uuids: list[str]) -> list[Any]:
        assert host == "host1"
        self.asked.append(instance_uuids)
        raise self.failure


@dataclass
class Host:
    """As much of a host as its reports need."""

    conductor: Conductor
    driver: SimulatedDriver
    claims: Claims
    conf: Any = field(default_factory=new_config)
    name: str = "host1"
    own_folders: tuple[Path, ...] = ()
    other_owner: str | None = None
    failed_builds: FailedBuilds = field(default_factory=FailedBuilds)
    fence: Any = field(default_factory=lambda: SimpleNamespace(disk_work=DiskWork()))


def reporter(directory: Path, failure: Exception) -> tuple[Reporter, Conductor]:
    """Of a host with a torn claim."""
    (directory / "claims").mkdir()
    (directory / "claims" / f"{SERVER}.json").write_bytes(b"")
    host: Any = Host(
        Conductor(failure), SimulatedDriver("host1", directory), Claims(directory / "claims", "host1", limits=LIMITS)
    )
    host.claims.load(None, [])
    placement: Any = None
    return Reporter(host, placement, directory), host.conductor


LIMITS = Limits(1.0, 1.0)
FAILURES = [errors.RpcTimeout("recorded_claims", "cell_conductor", 10.0), OSError("no space left on device")]


@pytest.mark.parametrize("failure", FAILURES)
def test_a_host_whose_torn_claims_are_unknown_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    made, conductor = reporter(tmp_path, failure)
    waits = 0

    def wait(_seconds: float) -> bool:
        nonlocal waits
        waits += 1
        return waits > 3

    monkeypatch.setattr(made._stopping, "wait", wait)
    made._run()
    assert len(conductor.reports) == 3
    assert conductor.asked == [[SERVER]] * 3


@pytest.mark.parametrize("failure", FAILURES)
def test_a_host_starts_though_something_beside_its_report_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    made, conductor = reporter(tmp_path, failure)
    made._uuid = str(uuid.uuid4())
    monkeypatch.setattr(made, "_known_uuid", lambda: None)
    monkeypatch.setattr(made, "report_provider", lambda: None)
    made.start()
    made.stop()
    assert len(conductor.reports) == 1
    # The first one may be slow: the conductor starts at the same time.
    assert conductor.patience == [None]


@pytest.mark.parametrize(("interval", "patience"), [(10, 10.0), (1, 5.0), (120, 60.0)])
def test_a_lost_report_keeps_the_next_ones_back_no_longer_than_an_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval: int, patience: float
) -> None:
    made, conductor = reporter(tmp_path, FAILURES[0])
    made._host.conf = new_config(report_interval=interval)
    rounds = iter([False, False, True])
    monkeypatch.setattr(made._stopping, "wait", lambda _seconds: next(rounds))
    made._run()
    made._host.claims.on_change()
    assert conductor.patience == [patience] * 3


def test_a_claim_is_made_though_it_can_not_be_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is on the disk by then, and the next report has it."""
    made, _conductor = reporter(tmp_path, FAILURES[0])

    def fail(**_patience: float) -> None:
        raise OSError("the hypervisor is unreachable")

    monkeypatch.setattr(made, "report_alive", fail)
    made._host.claims.on_change()


def test_what_a_host_lacks_for_live_migrations_is_in_its_reports_once_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made, conductor = reporter(tmp_path, FAILURES[0])
    said: list[list[str]] = [["it does not listen"], ["it does not listen", "it waits too long"], []]
    looked = iter(said)
    monkeypatch.setattr(made._host.driver, "live_migration_lacks", lambda: next(looked))

    def wait(_seconds: float) -> bool:
        made.report_alive()
        return len(reported_of(conductor)) > 3

    monkeypatch.setattr(made._stopping, "wait", wait)
    made.report_alive()
    made._look()
    assert reported_of(conductor) == [None, *said]
    assert [record.getMessage() for record in caplog.records if "Live migrations" in record.msg] == [
        f"Live migrations of host host1: {each}" for each in said[1]
    ]


def reported_of(conductor: Conductor) -> list[Any]:
    return [report.node.capabilities["live_migration_lacks"] for report in conductor.reports]


def test_certificates_that_end_soon_are_in_its_reports_once_it_has_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no guest migrates live: disks go between hosts."""
    made, conductor = reporter(tmp_path, FAILURES[0])
    Authority(tmp_path / "authority").ensure("host1", "127.0.0.1", tmp_path / "pki")
    conf = made._host.conf
    conf.set_override("disk_transfer_tls", "required")
    conf.set_override("disk_transfer_pki_dir", str(tmp_path / "pki"))
    monkeypatch.setattr(made._host.driver, "supports_live_migration", False)
    monkeypatch.setattr(made, "_certificates", CertificateWatch("host1", 4000))
    monkeypatch.setattr(made, "_known_uuid", lambda: None)
    monkeypatch.setattr(made, "report_provider", lambda: None)
    made.start()
    made.stop()
    made._looking.join()
    made.report_alive()
    first, *_others, last = (report.node.capabilities["certificates_ending"] for report in conductor.reports)
    assert first is None
    assert [Path(each["file"]).name for each in last] == ["ca-cert.pem", "server-cert.pem", "client-cert.pem"]
