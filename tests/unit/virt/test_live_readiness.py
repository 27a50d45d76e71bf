"""What a host lacks for live migrations."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("libvirt")

from causeway.virt.libvirt.live.live_readiness import certificates, lacks, patience
from causeway.virt.libvirt.live.live_settings import LiveSettings

# Nobody listens there.
NOWHERE = "qemu+tcp://%s:1/system"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    retries, qemu_conf = tmp_path / "tcp_retries2", tmp_path / "qemu.conf"
    retries.write_text("4\n")
    qemu_conf.write_text(f'# default_tls_x509_cert_dir = "/none"\ndefault_tls_x509_cert_dir = "{tmp_path}/pki"\n')
    return {"retries": retries, "qemu_conf": qemu_conf}


def test_too_much_patience_of_tcp_is_reported(tmp_path: Path) -> None:
    retries = tmp_path / "tcp_retries2"
    for value, says in (("4\n", None), ("8\n", None), ("15\n", "tcp_retries2 is 15"), ("?", None)):
        retries.write_text(value)
        said = patience(retries)
        assert said is None if says is None else says in (said or "")
    assert patience(tmp_path / "none") is None


def test_a_hypervisor_that_nobody_reaches_is_reported(files: dict[str, Path]) -> None:
    (said,) = lacks(LiveSettings("127.0.0.2", uri=NOWHERE), **files)[1:]
    assert "qemu+tcp://127.0.0.2:1/system" in said and "let libvirtd listen" in said


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost"])
def test_an_address_that_others_can_not_reach_is_reported(files: dict[str, Path], address: str) -> None:
    said = lacks(LiveSettings(address, uri="qemu+tcp://127.0.0.1:1/system"), **files)[0]
    assert address in said and "live_migration_inbound_addr" in said


def test_missing_certificates_of_the_hypervisor_are_reported(files: dict[str, Path], tmp_path: Path) -> None:
    settings = LiveSettings("192.0.2.1", uri="qemu+tcp://127.0.0.1:1/system", certificates=True)
    assert (
        f"QEMU has no ca-cert.pem, server-cert.pem, server-key.pem, client-cert.pem, client-key.pem in {tmp_path}/pki"
        in (lacks(settings, **files)[-1])
    )
    (tmp_path / "pki").mkdir()
    for name in ("ca-cert.pem", "server-cert.pem", "server-key.pem", "client-cert.pem"):
        (tmp_path / "pki" / name).touch()
    assert "QEMU has no client-key.pem in" in lacks(settings, **files)[-1]
    (tmp_path / "pki" / "client-key.pem").touch()
    assert len(lacks(settings, **files)) == 1
    # Those of migrations go before; without any word it is the usual folder.
    files["qemu_conf"].write_text(
        f'default_tls_x509_cert_dir = "{tmp_path}/pki"\nmigrate_tls_x509_cert_dir = "{tmp_path}"\n'
    )
    assert f"in {tmp_path}:" in lacks(settings, **files)[-1]


def test_the_certificates_of_hypervisors_are_those_of_its_options(files: dict[str, Path], tmp_path: Path) -> None:
    qemu_conf = files["qemu_conf"]
    assert certificates(LiveSettings("192.0.2.1"), qemu_conf=qemu_conf) == []
    usual = [Path("/etc/pki") / name for name in ("CA/cacert.pem", "libvirt/servercert.pem", "libvirt/clientcert.pem")]
    assert certificates(LiveSettings("192.0.2.1", scheme="tls"), qemu_conf=qemu_conf) == usual
    elsewhere = LiveSettings("192.0.2.1", uri="qemu+tls://%s/system?pkipath=/pki", certificates=True)
    assert certificates(elsewhere, qemu_conf=qemu_conf) == [
        *(Path("/pki") / name for name in ("cacert.pem", "servercert.pem", "clientcert.pem")),
        *(tmp_path / "pki" / name for name in ("ca-cert.pem", "server-cert.pem", "client-cert.pem")),
    ]
