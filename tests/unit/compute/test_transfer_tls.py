"""Disks from host to host with TLS: who is refused, and what is said; certificates that are wrong, missing, or replaced."""

from __future__ import annotations

import datetime
import logging
import os
import re
import shutil
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from cryptography.hazmat.primitives import serialization

from causeway import errors
from causeway.compute.disks import disk_server
from causeway.compute.disks.certificates import NAMES, Certificates
from causeway.compute.disks.disk_offers import DiskOffers
from causeway.compute.handover import disk_fetch, part_fetch
from causeway.compute.handover.peers import Peer
from causeway.conf import new_config
from causeway.http.secured import Tls
from causeway.model.outcomes import DiskOffer
from causeway.model.warm import CopiedDisk, CopyRound
from causeway.virt.lab import certificates as lab
from causeway.virt.lab.certificates import Authority
from tests.unit.compute.transfers import MIB, Fetching, Pair, new_server

ADDRESS = "127.0.0.1"


class Pki:
    """Folders of certificates, each made by its authority."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def folder(self, name: str, authority: str = "authority", address: str = ADDRESS) -> Path:
        folder = self._directory / name
        Authority(self._directory / authority).ensure(name, address, folder)
        return folder


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path / "pki")


@pytest.fixture
def pair(tmp_path: Path, pki: Pki, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Both require TLS, with certificates of one authority."""
    monkeypatch.setattr(disk_fetch, "PAUSE", 0.01)
    conf = new_config(
        disk_transfer_patience=0.5, disk_transfer_tls="required", disk_transfer_pki_dir=str(pki.folder("target"))
    )
    server = new_server(tmp_path, Tls(Certificates(pki.folder("source")).server_context))
    made = Pair(tmp_path, DiskOffers(tmp_path / "offers"), server, Fetching(conf))
    made.server.start()
    yield made
    made.server.stop()


def restarts(pair: Pair, folder: Path | None, *, required: bool = True) -> None:
    """The source is back with other certificates (None: without TLS)."""
    pair.restart(Tls(Certificates(folder).server_context, required) if folder is not None else None)


def target(pair: Pair, mode: str = "required", folder: Path | None = None) -> None:
    """The target has other options."""
    pair.target.conf.set_override("disk_transfer_tls", mode)
    if folder is not None:
        pair.target.conf.set_override("disk_transfer_pki_dir", str(folder))


def refused(pair: Pair, offer: DiskOffer | None = None) -> str:
    """What administrators see of the error: that it needs no patience is shown by there being no end to it."""
    pair.target.conf.set_override("disk_transfer_patience", 3600.0)
    with pytest.raises(errors.HostNotTrusted, match="check the certificates of both") as caught:
        pair.fetch(offer or pair.offer(b"content"))
    assert list(pair.directory.glob(".fetched*")) == []
    assert caught.value.details.startswith("host fetching: ")
    return caught.value.details


def test_a_disk_comes_encrypted_as_it_was_offered(pair: Pair) -> None:
    content = os.urandom(3 * MIB + 5)
    offer = pair.offer(content)
    assert offer.url.startswith("https://")
    assert pair.fetch(offer).read_bytes() == content
    disk_fetch.release(pair.target, offer)
    assert pair.offers.servers() == set()


def test_connections_that_break_are_replaced(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    content, sent, began = os.urandom(4 * MIB), disk_server._content, []

    def broken_once(path: Path, first: int) -> Iterator[bytes]:
        began.append(first)
        for number, chunk in enumerate(sent(path, first)):
            if first == 0 and number == 1:
                raise ConnectionResetError("broken by the test")
            yield chunk

    monkeypatch.setattr(disk_server, "_content", broken_once)
    assert pair.fetch(pair.offer(content)).read_bytes() == content
    assert began == [0, MIB]


def test_a_source_that_is_gone_is_a_broken_transfer(pair: Pair) -> None:
    offer = pair.offer(b"content")
    pair.server.stop()
    with pytest.raises(errors.DiskTransferBroken, match="0 of 7 bytes arrived"):
        pair.fetch(offer)


def test_a_source_of_another_authority_is_refused(pair: Pair, pki: Pki) -> None:
    restarts(pair, pki.folder("stranger", "other"))
    assert "certificate verify failed" in refused(pair)


def test_a_source_with_the_certificate_of_another_host_is_refused(pair: Pair, pki: Pki) -> None:
    restarts(pair, pki.folder("other", address="127.0.0.2"))
    assert "IP address mismatch" in refused(pair)


def test_a_source_whose_certificate_has_expired_is_refused(
    pair: Pair, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "_VALID", datetime.timedelta(hours=-1))
    restarts(pair, pki.folder("expired"))
    assert "certificate has expired" in refused(pair)


def as_client(pki: Pki, other: Path) -> Path:
    """A folder in which only what a client shows is another one's."""
    folder = pki.folder("as-client")
    for name in ("client-cert.pem", "client-key.pem"):
        shutil.copy(other / name, folder / name)
    return folder


def test_a_target_of_another_authority_is_refused(pair: Pair, pki: Pki, caplog: pytest.LogCaptureFixture) -> None:
    target(pair, folder=as_client(pki, pki.folder("stranger", "other")))
    assert re.search("unknown ca|decrypt error|certificate", refused(pair))
    pair.server.stop()
    assert "127.0.0.1 was refused: its TLS handshake failed" in caplog.text


def test_a_target_whose_certificate_has_expired_is_refused(
    pair: Pair, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(lab, "_VALID", datetime.timedelta(hours=-1))
        expired = pki.folder("expired")
    target(pair, folder=as_client(pki, expired))
    assert "certificate expired" in refused(pair)


def test_who_shows_no_certificate_is_refused_and_sees_why(
    pair: Pair, pki: Pki, caplog: pytest.LogCaptureFixture
) -> None:
    offer, authority = pair.offer(b"content"), str(pki.folder("target") / "ca-cert.pem")
    headers = {"Authorization": f"Bearer {offer.token}"}
    with pytest.raises(requests.exceptions.SSLError, match="certificate required"):
        requests.get(f"{offer.url}/disk", headers=headers, verify=authority, timeout=60)
    pair.server.stop()
    assert "peer did not return a certificate" in caplog.text


def test_who_has_a_certificate_still_needs_the_secret(pair: Pair) -> None:
    offer = pair.offer(b"content")
    with Peer(pair.target, "wrong") as peer:
        answer = peer.ask("GET", f"{offer.url}/disk", timeout=(10, 10))
    assert answer.status_code == 401


def test_who_speaks_plain_http_gets_nothing(pair: Pair) -> None:
    offer = pair.offer(b"content")
    plain = offer.url.replace("https:", "http:")
    answer = requests.get(f"{plain}/disk", headers={"Authorization": f"Bearer {offer.token}"}, timeout=60)
    assert (answer.status_code, answer.content) == (426, b"")


@pytest.mark.parametrize("most", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_1])
def test_nothing_older_than_tls_1_2_is_spoken(pair: Pair, most: ssl.TLSVersion) -> None:
    context = Certificates(Path(pair.target.conf.disk_transfer_pki_dir)).client_context()
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = most
    # Else the client itself refuses the older one.
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with socket.create_connection((ADDRESS, int(pair.server.url.split(":")[2].split("/")[0])), timeout=60) as sock:
        if most == ssl.TLSVersion.TLSv1_2:
            assert context.wrap_socket(sock, server_hostname=ADDRESS).version() == "TLSv1.2"
            return
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            context.wrap_socket(sock, server_hostname=ADDRESS)


# hosts with TLS and hosts without


@pytest.mark.parametrize("fetches", ["off", "optional", "required"])
@pytest.mark.parametrize("serves", ["off", "optional", "required"])
def test_hosts_before_and_after_the_change(
    pair: Pair, pki: Pki, monkeypatch: pytest.MonkeyPatch, serves: str, fetches: str
) -> None:
    """Only a host that requires TLS and one that has none can't transfer anything."""
    restarts(pair, pki.folder("source") if serves != "off" else None, required=serves == "required")
    target(pair, fetches)
    asked: list[str] = []
    send = requests.Session.send

    def sent(session: Any, request: Any, **more: Any) -> Any:
        asked.append(request.url.partition(":")[0])
        return send(session, request, **more)

    monkeypatch.setattr(requests.Session, "send", sent)
    offer = pair.offer(b"content")
    assert offer.url.startswith("https:") == (serves == "required")
    if {serves, fetches} == {"off", "required"}:
        why = refused(pair, offer)
        assert ("disk_transfer_tls is off here" if fetches == "off" else "wrong version number") in why
        return
    assert pair.fetch(offer).read_bytes() == b"content"
    assert set(asked) == {"https" if "required" in (serves, fetches) else "http"}


@pytest.mark.parametrize("fetches", ["off", "optional", "required"])
def test_what_was_offered_before_the_source_required_tls(pair: Pair, fetches: str) -> None:
    offer = pair.offer(b"content")
    offer.url = offer.url.replace("https:", "http:")
    target(pair, fetches)
    if fetches == "off":
        assert "disk_transfer_tls is off here" in refused(pair, offer)
    else:
        assert pair.fetch(offer).read_bytes() == b"content"


def part(pair: Pair) -> bytes:
    disk = CopiedDisk("disk", size=7, block=7, to_send=7, parts=1)
    offer = pair.offer(b"content")
    copied = CopyRound(1, None, f"{offer.url}/rounds", offer.token, [disk])
    with (
        Peer(pair.target, offer.token) as peer,
        part_fetch.open_part(pair.target, peer, copied, disk, 0) as source,
    ):
        buffer = bytearray(100)
        return bytes(buffer[: source.readinto(memoryview(buffer))])


def test_parts_of_a_running_guests_disk_are_refused_too(pair: Pair, pki: Pki) -> None:
    with pytest.raises(errors.DiskTransferBroken, match="does not have that round"):
        part(pair)
    restarts(pair, pki.folder("stranger", "other"))
    with pytest.raises(errors.HostNotTrusted):
        part(pair)


# certificates


def test_replaced_certificates_count_from_the_next_connection_on(
    pair: Pair, pki: Pki, caplog: pytest.LogCaptureFixture
) -> None:
    folder, new = pki.folder("source"), pki.folder("new", "other")
    shutil.copytree(new, folder, dirs_exist_ok=True, symlinks=False)
    assert "certificate verify failed" in refused(pair)
    target(pair, folder=new)
    assert pair.fetch(pair.offer(b"content")).read_bytes() == b"content"
    # Half of the next ones: a key that does not fit.
    shutil.copy(pki.folder("third", "other") / "server-key.pem", folder / "server-key.pem")
    assert pair.fetch(pair.offer(b"content")).read_bytes() == b"content"
    assert "the former ones are" in caplog.text


def without(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def garbled(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text("nonsense")


def locked(folder: Path) -> None:
    path = folder / "server-key.pem"
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path.write_bytes(key.private_bytes(encoding, form, serialization.BestAvailableEncryption(b"secret")))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        *((without(name), f"{name} can't be read: No such file") for name in NAMES),
        *((garbled(name), "can't be used") for name in NAMES),
        (locked, "passphrase"),
    ],
)
def test_certificates_that_are_missing_or_damaged_are_named(
    pki: Pki, damage: Callable[[Path], object], said: str
) -> None:
    folder = pki.folder("own")
    Certificates(folder).check(ADDRESS)
    damage(folder)
    with pytest.raises(errors.Misconfigured, match=said) as caught:
        Certificates(folder).check(ADDRESS)
    assert str(folder) in caught.value.message and "disk_transfer_tls" in caught.value.message


def test_certificates_that_do_not_fit_the_host_are_named(pki: Pki) -> None:
    with pytest.raises(errors.Misconfigured, match=r"server-cert\.pem as that of a server at 127\.0\.0\.1 .*mismatch"):
        Certificates(pki.folder("other", address="127.0.0.2")).check(ADDRESS)
    with pytest.raises(errors.Misconfigured, match=r"client-cert\.pem as a client's"):
        Certificates(as_client(pki, pki.folder("stranger", "other"))).check(ADDRESS)


def test_a_target_whose_files_went_says_so(pair: Pair, pki: Pki) -> None:
    folder = pki.folder("going")
    target(pair, folder=folder)
    shutil.rmtree(folder)
    assert f"its own certificates in {folder} can't be used" in refused(pair)


def test_transfers_at_the_same_time_do_not_wait_for_one_another(pair: Pair) -> None:
    content, came = os.urandom(2 * MIB), []
    offer = pair.offer(content)

    def fetch(number: int) -> None:
        path = pair.directory / f"fetched-{number}"
        disk_fetch.fetch(pair.target, offer, offer.disks[0], path, lambda _done: None)
        came.append(path.read_bytes() == content)

    threads = [threading.Thread(target=fetch, args=(number,)) for number in range(2 * disk_server.THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert came == [True] * len(threads)


@pytest.fixture(autouse=True)
def log_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
