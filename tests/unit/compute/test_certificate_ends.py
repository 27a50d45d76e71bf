"""Certificates that will expire are announced: in the log, as a metric, and in the reports of their host."""

from __future__ import annotations

import datetime
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from causeway.compute.upkeep.certificate_ends import CertificateWatch, files_in_use
from causeway.conf import new_config
from causeway.model.certificates import CertificateEnd
from causeway.virt.lab import certificates as lab
from causeway.virt.lab.certificates import Authority
from causeway.virt.simulated import SimulatedDriver

DAY = datetime.timedelta(days=1)
NAMES = ("ca-cert.pem", "server-cert.pem", "client-cert.pem")
Issue = Callable[..., Path]


@pytest.fixture
def issue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Issue:
    def make(name: str, *, days: float, authority_days: float = 1000) -> Path:
        """A folder with certificates for so many days from now on."""
        folder, authority = tmp_path / name, Authority(tmp_path / f"{name}-authority")
        monkeypatch.setattr(lab, "_VALID", authority_days * DAY)
        authority.ensure(name, "127.0.0.1", folder)
        shutil.rmtree(folder)
        monkeypatch.setattr(lab, "_VALID", days * DAY)
        authority.ensure(name, "127.0.0.1", folder)
        return folder

    return make


def in_use(folder: Path) -> list[Path]:
    return [folder / name for name in NAMES]


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Level and message of each line since the last call."""
    found = [(record.levelname, record.getMessage()) for record in caplog.records]
    caplog.clear()
    return found


def test_a_certificate_that_lives_long_is_not_spoken_of(issue: Issue, caplog: pytest.LogCaptureFixture) -> None:
    assert CertificateWatch("host1", 30).look(in_use(issue("gen1", days=31)), now()) == []
    assert said(caplog) == []


def test_one_that_ends_soon_is_a_warning_once_a_day(issue: Issue, caplog: pytest.LogCaptureFixture) -> None:
    folder, began = issue("gen1", days=29.5), now()
    watch = CertificateWatch("host1", 30)
    found = watch.look(in_use(folder), began)
    assert [Path(each.file).name for each in found] == ["server-cert.pem", "client-cert.pem"]
    lines = said(caplog)
    assert [level for level, _message in lines] == ["WARNING", "WARNING"]
    for (_level, message), name in zip(lines, ("client-cert.pem", "server-cert.pem"), strict=True):
        assert (
            f"host1: {folder / name}: the certificate of gen1 expires in 29 days, on {found[0].ends:%Y-%m-%d}"
            in message
        )
        assert "Replace the file" in message
    watch.look(in_use(folder), began + DAY / 4)
    assert said(caplog) == []
    watch.look(in_use(folder), began + DAY)
    assert [(level, "in 28 days" in message) for level, message in said(caplog)] == [("WARNING", True)] * 2


def test_an_expired_one_is_an_error_every_day(issue: Issue, caplog: pytest.LogCaptureFixture) -> None:
    folder, began = issue("gen1", days=1), now()
    watch = CertificateWatch("host1", 0)
    assert watch.look([folder / "server-cert.pem"], began) == []
    for days in (1.5, 2.5):
        (found,) = watch.look([folder / "server-cert.pem"], began + days * DAY)
        assert found.has_expired(began + days * DAY)
        ((level, message),) = said(caplog)
        assert (level, "expired" in message) == ("ERROR", True)


def test_an_authority_that_ends_soon_is_named(issue: Issue, caplog: pytest.LogCaptureFixture) -> None:
    folder = issue("gen1", days=1000, authority_days=2.5)
    CertificateWatch("host1", 30).look(in_use(folder), now())
    ((_level, message),) = said(caplog)
    assert f"{folder / 'ca-cert.pem'}: the certificate of Causeway lab expires in 2 days" in message


def test_each_of_several_authorities_counts(issue: Issue) -> None:
    both, other = issue("gen1", days=1000), issue("gen2", days=1000, authority_days=2.5)
    bundle = both / "ca-cert.pem"
    bundle.write_bytes(bundle.read_bytes() + (other / "ca-cert.pem").read_bytes())
    (found,) = CertificateWatch("host1", 30).look([bundle], now())
    assert expiry(bundle) == found.ends.timestamp()


def test_a_renewed_one_is_no_longer_announced(issue: Issue, caplog: pytest.LogCaptureFixture) -> None:
    folder, watch = issue("gen1", days=5), CertificateWatch("host1", 30)
    assert watch.look(in_use(folder), now())
    before = expiry(folder / "server-cert.pem")
    said(caplog)
    shutil.copytree(issue("gen1-renewed", days=1000), folder, dirs_exist_ok=True)
    assert watch.look(in_use(folder), now()) == []
    assert said(caplog) == []
    assert expiry(folder / "server-cert.pem") > before


def expiry(path: Path) -> float:
    found = REGISTRY.get_sample_value("causeway_certificate_expiry_timestamp_seconds", {"file": str(path)})
    assert found is not None
    return found


def test_a_file_that_is_no_certificate_is_said_and_hides_no_other(
    issue: Issue, caplog: pytest.LogCaptureFixture
) -> None:
    folder = issue("gen1", days=5)
    (folder / "ca-cert.pem").write_text("nothing")
    (folder / "client-cert.pem").unlink()
    found = CertificateWatch("host1", 30).look(in_use(folder), now())
    assert [Path(each.file).name for each in found] == ["server-cert.pem"]
    assert [f"{folder / 'ca-cert.pem'} can't be read" in message for _level, message in said(caplog)] == [True, False]


def test_what_is_reported_can_be_read_again(issue: Issue) -> None:
    for each in CertificateWatch("host1", 30).look(in_use(issue("gen1", days=5)), now()):
        assert CertificateEnd.reported(each.report()) == each


def test_only_what_is_used_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver: Any = SimulatedDriver("host1", tmp_path)
    conf = new_config(disk_transfer_pki_dir="/pki")
    assert files_in_use(conf, driver) == []
    conf.set_override("disk_transfer_tls", "optional")
    assert files_in_use(conf, driver) == [Path("/pki") / name for name in NAMES]
    live = [Path("/pki/server-cert.pem"), Path("/etc/pki/CA/cacert.pem")]
    monkeypatch.setattr(driver, "live_migration_certificates", lambda: live)
    assert files_in_use(conf, driver) == [*live, Path("/pki/ca-cert.pem"), Path("/pki/client-cert.pem")]
    monkeypatch.setattr(driver, "supports_live_migration", False)
    assert files_in_use(conf, driver) == [Path("/pki") / name for name in NAMES]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Only what is said here is caught."""
    caplog.set_level(logging.WARNING, "causeway.compute.upkeep.certificate_ends")
