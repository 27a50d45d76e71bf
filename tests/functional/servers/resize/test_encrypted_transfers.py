"""Moves between hosts that require TLS: disks come whole, and a host that can't be trusted rolls the move back."""

from __future__ import annotations

import datetime
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests

from causeway.store.api import journal
from causeway.virt.lab import certificates as lab
from causeway.virt.lab.certificates import Authority
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import PATIENCE, Cloud

KIND = AuditedCloud
pytestmark = pytest.mark.embedded("looks into hosts, and changes their certificates")


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``own``: what the hosts have; ``stranger``: of another authority; ``expired``."""
    folder = tmp_path_factory.mktemp("pki")
    Authority(folder / "authority").ensure("host", "127.0.0.1", folder / "own")
    Authority(folder / "other").ensure("host", "127.0.0.1", folder / "stranger")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lab, "_VALID", datetime.timedelta(hours=-1))
        Authority(folder / "authority").ensure("expired", "127.0.0.1", folder / "expired")
    for name in ("ca-cert", "server-cert", "server-key"):
        # Of these only what they show as clients is wrong.
        shutil.copy(folder / "own" / f"{name}.pem", folder / "expired")
    return folder


@pytest.fixture(scope="module")
def cloud_options(pki: Path) -> dict[str, Any]:
    return {"overrides": {"DEFAULT": {"disk_transfer_tls": "required", "disk_transfer_pki_dir": str(pki / "own")}}}


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs of which hosts fetch."""
    found: list[str] = []
    send = requests.Session.send

    def sent(session: Any, request: Any, **more: Any) -> Any:
        if "/disks/" in request.url:
            found.append(request.url)
        return send(session, request, **more)

    monkeypatch.setattr(requests.Session, "send", sent)
    return found


FLAVORS = {"in its cell": ("any.small", "any.medium"), "to another cell": ("gen1.small", "gen2.small")}


@pytest.mark.parametrize("is_warm", [True, False], ids=["warm", "cold"])
@pytest.mark.parametrize("where", FLAVORS)
def test_disks_come_as_they_were(cloud: AuditedCloud, fetched: list[str], where: str, is_warm: bool) -> None:
    if not is_warm:
        cloud.without_rounds()
    before, after = FLAVORS[where]
    server = cloud.boot(flavor=before)
    source = cloud.show(server).compute_host
    cloud.driver(source).guest_write(server.id, "precious")
    for method in ("POST", "PUT"):
        cloud.fail("status", "/images", service="image", method=method, status=403)
    if where == "to another cell" and not is_warm:
        # Without a round before, what goes to another cell goes through the image service.
        cloud.heal()
        cloud.without_rounds()
    moved = cloud.resized(server, after)
    assert "precious" in cloud.driver(moved.compute_host).guest_read(server.id)
    assert moved.compute_host != source
    assert all(url.startswith("https://127.0.0.1:") for url in fetched)
    assert fetched or (where, is_warm) == ("to another cell", False)
    cloud.confirmed(server)
    assert "precious" in cloud.driver(moved.compute_host).guest_read(server.id)
    assert cloud.audit().is_clean


@pytest.mark.parametrize("wrong", ["stranger", "expired"])
@pytest.mark.parametrize("where", FLAVORS)
def test_a_running_server_stays_on_while_hosts_refuse_each_other(
    cloud: AuditedCloud, pki: Path, where: str, wrong: str
) -> None:
    """The target's certificates are wrong: that is found out before the guest is switched off."""
    small, larger = FLAVORS[where]
    server = cloud.boot(flavor=small)
    before = cloud.reality(server)
    # Each connection reads the files: servers have theirs from the start.
    cloud.option("disk_transfer_pki_dir", str(pki / wrong))
    cloud.member.compute.resize_server(server.id, larger)
    cloud.failed(server)
    assert cloud.reality(server) == before
    fault = cloud.faults(server, before["shown"][3][:5])[-1]
    assert "check the certificates of both" in fault.message
    move = cloud.moves(server)[-1]
    steps = [step.step for step in journal.steps(cloud.parts.api_database, move.id)]
    assert "CopyWhileRunning" in steps
    assert not {"HandOver"} & set(steps), "the guest was not switched off"
    assert cloud.audit().is_clean


def test_a_stopped_server_is_rolled_back_when_hosts_refuse_each_other(cloud: AuditedCloud, pki: Path) -> None:
    server = cloud.boot(flavor="any.small")
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    before = cloud.reality(server)
    cloud.option("disk_transfer_pki_dir", str(pki / "stranger"))
    cloud.member.compute.resize_server(server.id, "any.medium")
    cloud.failed(server, "SHUTOFF")
    assert cloud.reality(server) == before
    assert "check the certificates of both" in cloud.faults(server, before["shown"][3][:5])[-1].message
    assert ("compute_finish_resize", "Error") in cloud.events(server, "resize")
    assert cloud.audit().is_clean
    cloud.heal()
    cloud.resized(server, "any.medium")


def test_the_fault_names_hosts_and_reason_to_administrators_only(cloud: AuditedCloud, pki: Path) -> None:
    server = cloud.boot(flavor="any.small")
    host = cloud.show(server).compute_host
    cloud.option("disk_transfer_pki_dir", str(pki / "stranger"))
    cloud.member.compute.resize_server(server.id, "any.medium")
    cloud.failed(server)
    shown = cloud.faults(server, host[:5])[-1]
    assert "certificate verify failed" in shown.details and "https://127.0.0.1" in shown.details
    assert "host cell" in shown.details
    assert "127.0.0.1" not in shown.message


def test_who_knows_the_secret_needs_a_certificate_too(cloud: Cloud, pki: Path) -> None:
    server = cloud.boot(flavor="any.small")
    with cloud.held("finish_snapshot_based_resize_at_dest") as arrived:
        cloud.member.compute.resize_server(server.id, "any.medium")
        assert arrived.wait(PATIENCE)
        offer = cloud.moves(server)[-1].data["offer"]
        url = f"{offer['url']}/{offer['disks'][0]['name']}"
        asked: dict[str, Any] = {"headers": {"Authorization": f"Bearer {offer['token']}"}, "timeout": 10}
        authority = str(pki / "own" / "ca-cert.pem")
        with pytest.raises(requests.exceptions.SSLError):
            requests.get(url, verify=authority, **asked)
        wrong = (str(pki / "stranger" / "client-cert.pem"), str(pki / "stranger" / "client-key.pem"))
        with pytest.raises(requests.exceptions.SSLError):
            requests.get(url, verify=authority, cert=wrong, **asked)
        own = (str(pki / "own" / "client-cert.pem"), str(pki / "own" / "client-key.pem"))
        assert requests.get(url, verify=authority, cert=own, **asked).status_code == 200
    cloud.wait(server, "VERIFY_RESIZE")


def test_a_host_whose_certificates_cannot_be_used_does_not_start(tmp_path: Path) -> None:
    path = tmp_path / "compute.conf"
    (tmp_path / "nothing").mkdir()
    path.write_text(f"""
[DEFAULT]
transport_url = rabbit://nobody:nothing@127.0.0.1:9/
compute_driver = simulated
state_path = {tmp_path / "state"}
disk_transfer_tls = optional
disk_transfer_pki_dir = {tmp_path / "nothing"}
[placement]
auth_type = password
auth_url = http://127.0.0.1:9/
""")
    program = [str(Path(sys.executable).with_name("causeway")), "compute", "--config-file", str(path)]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 1
    (last,) = ended.stderr.strip().splitlines()[-1:]
    assert last.startswith(
        f"Error: The certificates in {tmp_path / 'nothing'} can't be used: ca-cert.pem can't be read"
    )
